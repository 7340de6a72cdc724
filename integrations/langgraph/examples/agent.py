"""An A2A agent on LangGraph whose tools run in Carrel: run any number of processes of it on one database.

    CARREL_TOKEN=... CARREL_REVIEWER_TOKEN=... DATABASE_URL=postgresql://... python agent.py --port 8000

It needs no model: `scripted` stands for one, and takes each line of a message as a call, such as

    shell: grep -c error log
    python: print(6 * 7)
    write: notes.txt buy milk
    read: notes.txt
    list: .
    remove: notes.txt
    install: six

Replace it by `init_chat_model(...).bind_tools(tools)`. CARREL_HOST says where the daemon is; SETTINGS and SOURCES name the
settings.json and sources.json of its workspaces."""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import uuid
from typing import Any, AsyncIterator, Dict, List, Optional, Union

import uvicorn
from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

from carrel import AsyncCarrel
from carrel_langgraph import Contexts, carrel_tools
from carrel_langgraph.a2a import GraphExecutor, postgres_turns

NAME = "carrel-example"
PARKED_SECONDS = 60.0   # how long a process keeps a task that waits for an answer: another one may get the answer


# ---- the graph ----

def scripted(state: MessagesState) -> Dict[str, List[AIMessage]]:
    """Stands for a model: calls what the last message of the user says, then repeats what the tools said."""
    last = state["messages"][-1]
    if isinstance(last, HumanMessage):
        calls = [call for line in str(last.text).splitlines() if (call := read_call(line))]
        return {"messages": [AIMessage("" if calls else f"you said: {last.text}", tool_calls=calls)]}
    said: List[str] = []
    for message in reversed(state["messages"]):
        if not isinstance(message, ToolMessage):
            break
        said.insert(0, str(message.text))
    return {"messages": [AIMessage("\n".join(said))]}


def read_call(line: str) -> Optional[ToolCall]:
    verb, _, rest = (part.strip() for part in line.partition(":"))
    first, _, more = rest.partition(" ")
    calls: Dict[str, tuple[str, Dict[str, Any]]] = {
        "shell": ("shell", {"command": rest}), "python": ("python", {"code": rest}), "read": ("read_file", {"path": rest}),
        "write": ("write_file", {"path": first, "content": more}), "list": ("list_files", {"path": rest}),
        "remove": ("remove_file", {"path": rest}), "install": ("install", {"packages": rest.split()})}
    if verb not in calls or not rest:
        return None
    name, args = calls[verb]
    return ToolCall(name=name, args=args, id=uuid.uuid4().hex, type="tool_call")


def route(state: MessagesState) -> Union[str, List[Send]]:
    """Each call is a graph task of its own: it waits, and is answered, by itself."""
    last = state["messages"][-1]
    return [Send("tools", [call]) for call in last.tool_calls] if isinstance(last, AIMessage) and last.tool_calls else END


def build_graph(contexts: Contexts, checkpointer: "BaseCheckpointSaver[Any]") -> "CompiledStateGraph[Any, Any, Any, Any]":
    graph = StateGraph(MessagesState)
    graph.add_node("model", scripted)
    graph.add_node("tools", ToolNode(carrel_tools(contexts)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", route, ["tools", END])
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=checkpointer)


# ---- the server ----

def card_of(url: str) -> AgentCard:
    return AgentCard(
        name=NAME, description="Runs commands in the workspace of a conversation", version="0.1.0",
        supported_interfaces=[AgentInterface(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0"),
                              AgentInterface(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True), default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="run", name="Run", description="Runs commands, edits files, installs packages", tags=["shell"])])


def file_of(name: str) -> Optional[Dict[str, Any]]:
    """The JSON file that a variable names."""
    if not (path := os.environ.get(name)):
        return None
    with open(path) as file:
        read: Dict[str, Any] = json.load(file)
    return read


@contextlib.asynccontextmanager
async def application(database: str, url: str) -> AsyncIterator[Starlette]:
    turns = postgres_turns(database)
    engine = create_async_engine(database.replace("postgresql://", "postgresql+psycopg://", 1))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(engine.dispose)
        pool = await stack.enter_async_context(AsyncConnectionPool(
            database, min_size=1, max_size=8, open=False, kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}))
        checkpointer, tasks, events = AsyncPostgresSaver(pool), VersionedDatabaseTaskStore(engine), DatabaseTaskEventStream(engine)     # type: ignore[arg-type]
        async with turns(f"{NAME} makes its tables"):
            await checkpointer.setup()
            await tasks.initialize()
            await events.initialize()
        carrel = await stack.enter_async_context(AsyncCarrel())
        reviewer = await stack.enter_async_context(AsyncCarrel(token=os.environ["CARREL_REVIEWER_TOKEN"]))
        contexts = Contexts(carrel, reviewer, agent=NAME, settings=file_of("SETTINGS"), sources=file_of("SOURCES"))
        executor = GraphExecutor(build_graph(contexts, checkpointer), contexts, turns, tasks)
        handler = DefaultRequestHandlerV2(executor, tasks, card_of(url), event_stream=events, interrupted_task_timeout=PARKED_SECONDS)
        stack.push_async_callback(handler.aclose)
        yield Starlette(routes=[*create_agent_card_routes(card_of(url)), *create_jsonrpc_routes(handler, "/"), *create_rest_routes(handler)])


async def main() -> None:
    parser = argparse.ArgumentParser(description="A2A agent whose tools run in Carrel")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free")
    arguments = parser.parse_args()
    with socket.create_server((arguments.host, arguments.port)) as listener:
        url = f"http://{arguments.host}:{listener.getsockname()[1]}"
        async with application(os.environ["DATABASE_URL"], url) as app:
            print(f"{NAME} serves {url}", flush=True)
            await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main())
