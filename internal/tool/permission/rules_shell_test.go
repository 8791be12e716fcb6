package permission_test

import (
	"strings"
	"testing"

	"loki/internal/tool/permission"
)

// A rule that allows everything does not let through what hides a command that another rule
// denies.
func TestDeniedCommandsInWrappers(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Home: "/home/user", Shell: "bash", Rules: permission.Rules{List: []permission.Rule{
		{Tool: "execute_command", Action: permission.Allow},
		{Tool: "execute_command", Action: permission.Deny, Commands: []string{"rm *"}},
	}}})
	for _, text := range []string{
		"bash -c -- 'rm -rf x'", "bash -c -e 'rm x'", "sh -xec 'rm x'", "bash +x -c 'rm x'", "bash -o errexit -c 'rm x'", "bash --posix -c 'rm x'",
		`sh -c "$(echo rm -rf x)"`, "bash <<< 'rm x'", "echo 'rm x' | sh", "sh <<EOF\nrm x\nEOF", "env -S 'rm -rf x'", "eval $x",
		"sudo --user=root rm -rf x", "nice --adjustment=3 rm x", "timeout --kill=3 5 rm x", "xargs --max-lines=1 rm x", "watch --interval=1 rm x",
		"pkexec rm x", "runuser -u x -- rm x", "setpriv --reuid=0 rm x", "systemd-run rm x", "linux64 rm x", "su -c rm", "ssh host rm x", "ssh -p 5 host rm x", "fd -HX rm", "fd --exec=rm",
	} {
		if v := j.Judge(shellCall(text)); v.Action == permission.Allow {
			t.Errorf("%q is allowed: %+v", text, v)
		}
	}
	for _, text := range []string{"bash run.sh", "bash -x run.sh", "sh --version", "touch y", "sudo touch y"} {
		if v := j.Judge(shellCall(text)); v.Action != permission.Allow {
			t.Errorf("%q: %+v", text, v)
		}
	}
}

// A wildcard does not allow the options by which a program runs others.
func TestWildcardsAllowNoOtherPrograms(t *testing.T) {
	t.Parallel()
	root := project(t)
	for _, c := range []struct {
		pattern     string
		asked, fine []string
	}{
		{
			"git *",
			[]string{
				"git clone -u 'touch x' y", "git clone -c core.fsmonitor=x y", "git clone --config core.fsmonitor=x y", "git grep -Otouch x",
				"git --no-pager config core.pager x", "git --no-pager submodule foreach 'touch x'", "git -P rebase -x 'touch x' HEAD~1", "git -P bisect run touch x",
				"git clone 'ext::sh -c touch% x' y", "git fetch --upload-p=x",
				"git -p difftool -x 'touch x'", "git remote-ext a 'touch x'", "git for-each-repo --config=x status", "git send-email --sendmail-cmd=x",
			},
			[]string{"git push -u origin main", "git commit -m x", "git --no-pager log", "git grep -n O", "git commit -c HEAD", "git commit --amend -C HEAD", "git log -- a.txt"},
		},
		{"go build *", []string{"go build -ldflags='-linkmode=external -extld=/tmp/e'", "go build -toolexec x"}, []string{"go build -ldflags=-s ./..."}},
		{"go *", []string{"go generate ./...", "go run x.go"}, []string{"go vet ./...", "go test ./run", "go help run"}},
		{"go run *", []string{"go run -exec x y.go"}, []string{"go run y.go"}},
		{"make *", []string{"make -sf evil", "make --file evil", "make --makefile=evil", "make CC=x"}, []string{"make test", "make -j4 test", "make -k all"}},
		{"tar *", []string{"tar cfI x 'touch x' y", "tar -cI x -f y z", "tar --rmt-command=x -cf h:y z"}, []string{"tar czf x.tgz y"}},
		{"rsync *", []string{"rsync -ave 'sh -c x' a b:"}, []string{"rsync -av a b"}},
		{"sed *", []string{"sed -i '1e touch x' a.txt", "sed -f x a.txt", "sed --debug '1e touch x' a.txt", "sed s/a/b/ a.txt$X", "sed s/a/b/ *"}, []string{"sed -i s/a/b/ a.txt", "sed -i.bak -E s/a/b/g a.txt"}},
		{"awk *", []string{`awk 'BEGIN{system("touch x")}'`, `awk '{print > "x"}' a.txt`, "awk -f x.awk", "awk *"}, []string{`awk '{print $1}' a.txt`, "awk -F: '{print $2}' a.txt"}},
		{"gcc *", []string{"gcc -wrapper x,y a.c", "gcc -fplugin=x a.c"}, []string{"gcc -O2 -o a a.c"}},
		{"split *", []string{"split --filter='touch x' a", "split --filt='touch x' a", "split --f='touch x' a"}, []string{"split -l 5 a"}},
		{"npm *", []string{"npm --script-shell=x run y"}, []string{"npm run y"}},
		{"fd *", []string{"fd -HX touch", "fd --exec=touch"}, []string{"fd -H x"}},
		{"curl *", []string{"curl -sK x"}, []string{"curl -sL x"}},
	} {
		j := judge(t, permission.Options{Root: root, Home: "/home/user", Shell: "bash", Rules: permission.Rules{List: []permission.Rule{
			{Tool: "execute_command", Action: permission.Allow, Commands: []string{c.pattern}},
		}}})
		for _, text := range c.asked {
			if v := j.Judge(shellCall(text)); v.Action != permission.Ask {
				t.Errorf("%s: %q: %+v", c.pattern, text, v)
			}
		}
		for _, text := range c.fine {
			if v := j.Judge(shellCall(text)); v.Action != permission.Allow {
				t.Errorf("%s: %q: %+v", c.pattern, text, v)
			}
		}
	}
}

// A rule about a path also holds for programs that would read it.
func TestPathRulesHoldForOperands(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Home: "/home/user", Shell: "bash", Rules: permission.Rules{List: []permission.Rule{
		{Tool: "execute_command", Action: permission.Deny, Paths: []string{"**/a.txt"}},
	}}})
	if v := j.Judge(shellCall("cat a.txt")); v.Action == permission.Allow {
		t.Errorf("%+v", v)
	}
	if v := j.Judge(shellCall("cat README.md")); v.Action != permission.Allow {
		t.Errorf("%+v", v)
	}
}

// TestProgramsThatRunOthers: a rule that denies a command denies it in all programs that run it.
func TestProgramsThatRunOthers(t *testing.T) {
	t.Parallel()
	commands := `script -c 'rm x' /dev/null
script -qc 'rm x' f
script -qc'rm x' f
script --command='rm x' f
script -q --command 'rm x'
env -S 'rm x'
env -S"rm x"
env --split-string='rm x'
env -iS rm x
env --unset A rm x
env A=1 find . -exec rm x \;
xargs sh -c 'rm x'
timeout 5 sh -c 'rm x'
timeout --signal KILL 5 rm x
nohup rm x
setsid -f sh -c 'rm x'
stdbuf -oL rm x
stdbuf --output L rm x
time rm x
/usr/bin/time -f %e rm x
nice -n 5 rm x
nice --adjustment 5 rm x
sudo -u bob rm x
sudo --user bob -- sh -c 'rm x'
sudo script -qc 'rm x' f
su -c 'rm x'
su - bob -c 'rm x'
su bob --command='rm x'
runuser -l bob -c 'rm x'
sg group -c 'rm x'
flock f -c 'rm x'
flock -w 5 f rm x
busybox rm x
busybox sh -c 'rm x'
pkexec --user bob rm x
nsenter -t 1 rm x
unshare -n rm x
strace -f rm x
gosu bob rm x
fish -c 'rm x'
tcsh -c 'rm x'
gtimeout 5 rm x
genv -S 'rm x'
hyperfine 'rm x'
timeout 5 env -S 'nice script -c "rm x"'`
	for _, boxed := range []bool{false, true} {
		j := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: boxed, Rules: read(t, `execute_command: {"rm *": deny}`)})
		for line := range strings.Lines(commands) {
			if v := j.Judge(shellCall(strings.TrimSpace(line))); v.Action != permission.Deny {
				t.Errorf("sandbox %t, %s: %+v", boxed, line, v)
			}
		}
		for _, unknown := range []string{"script -c \"$X\" f", "env -S \"$X\"", "su -c \"$X\"", "echo rm x | at now"} {
			if v := j.Judge(shellCall(unknown)); v.Action != permission.Ask {
				t.Errorf("sandbox %t, %s: %+v", boxed, unknown, v)
			}
		}
	}
}
