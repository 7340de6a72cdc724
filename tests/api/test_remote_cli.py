"""The tests of the command line that are about streams, terminals, signals and files, with a daemon on TCP and TLS: what is handed over as
descriptors on the unix socket travels otherwise then. Each is described where it is defined."""
import pytest
from authorities import make_authority, make_certificate
from doors import open_door
from daemons import serving_anew
from remotes import far_from
from test_cli_attach import (test_a_terminal_is_left_and_taken_again, test_input_goes_in_output_comes_out_and_its_end_is_ours)  # noqa: F401
from test_cli_cp import test_a_tree_comes_back_as_it_was, test_an_interrupted_copy_leaves_nothing, test_standard_streams, tree  # noqa: F401
from test_cli_exec import (test_a_client_that_is_killed_takes_its_command_along,  # noqa: F401
                           test_a_reader_that_goes_ends_the_writer, test_a_stop_from_the_terminal_stops_the_command,
                           test_a_third_interrupt_ends_it, test_kill_sends_signals, test_limits_of_one_command,
                           test_logs_follow_while_it_runs, test_much_goes_through_every_kind_of_stream, test_signals_are_passed_on,
                           test_streams_are_separate_and_whole, test_the_exit_code_is_the_commands, test_variables_directory_and_words,
                           test_what_can_not_run_is_126_or_127, test_what_is_left_running_keeps_nobody_waiting)
from test_cli_tty import (test_a_command_that_can_not_run_leaves_the_terminal_alone, test_a_pipe_into_a_terminal_ends_as_ctrl_d_does,  # noqa: F401
                          test_a_stop_puts_the_terminal_back_and_fg_takes_it_again, test_a_terminal_here_is_passed_on_without_t_and_given_to_nobody,
                          test_a_terminal_on_which_nobody_types_is_at_its_end, test_an_interrupt_typed_here_reaches_the_command,
                          test_much_output_arrives_whole, test_shell_is_bash_and_interrupts_are_its_own, test_size_and_its_changes_get_through,
                          test_the_terminal_is_as_before_however_it_ends, test_the_three_streams_are_a_terminal_of_its_own)
from test_ports import served, test_carrel_port_lists_and_relays  # noqa: F401
from workspaces import workspace  # noqa: F401

pytestmark = [pytest.mark.once, pytest.mark.shipped]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    authority = make_authority(tmp_path_factory.mktemp("authority"))
    files = make_certificate(authority, "daemon")
    with serving_anew() as local:
        door = open_door(local, "--tls-cert", files / "server.pem", "--tls-key", files / "server.key")
        with far_from(local, f"https://localhost:{door.address()[1]}", door.token, CARREL_CA=str(authority / "ca.pem")) as far:
            yield far


def test_attach_finds_the_authority_that_the_context_names(daemon, workspace, tmp_path):
    """Its connections for output and input are others than the one by which it has found the command."""
    (tmp_path / "token").write_text(daemon.env["CARREL_TOKEN"])
    env = {"CARREL_HOST": "", "CARREL_TOKEN": "", "CARREL_CA": "", "XDG_CONFIG_HOME": str(tmp_path)}
    added = daemon("context", "add", "lab", "--host", daemon.env["CARREL_HOST"], "--token-file", tmp_path / "token", "--ca", daemon.env["CARREL_CA"],
                   env=env)
    assert added.returncode == 0 and daemon("context", "use", "lab", env=env).returncode == 0, added.stderr
    exec_id = daemon("exec", "-d", "-i", workspace, "--", "cat", env=env).stdout.strip()
    done = daemon("attach", exec_id, env=env, input="through\n")
    assert (done.stdout, done.returncode) == ("through\n", 0), done.stderr
