package assets_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unicode/utf8"

	"loki/internal/base/value"
)

// toolset is a shell and an awk to run the scripts with.
type toolset struct {
	name  string
	shell []string // command that takes the script's path
	path  string   // PATH of the script
}

// toolsets returns bash with the usual awk, which is what Loki runs, and then the
// other shells and awks that this machine has. They show that the scripts keep to
// POSIX, and so run where the tools are those of BSD.
func toolsets(t testing.TB) []toolset {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the names of the files in these tests are impossible there")
	}
	bash := lookPath(t, "bash")
	lookPath(t, "awk")
	all := []toolset{{name: "bash", shell: []string{bash}, path: os.Getenv("PATH")}}
	if dash, err := exec.LookPath("dash"); err == nil {
		all = append(all, toolset{name: "dash", shell: []string{dash}, path: os.Getenv("PATH")})
	}
	for _, awk := range []string{"mawk", "gawk", "original-awk"} {
		if _, err := exec.LookPath(awk); err == nil {
			all = append(all, toolset{name: awk, shell: []string{bash}, path: pathWithAwk(t, awk)})
		}
	}
	if busybox, err := exec.LookPath("busybox"); err == nil {
		all = append(all, toolset{name: "busybox", shell: []string{busybox, "sh"}, path: pathWithAwk(t, busybox)})
	}
	return all
}

// lookPath returns the path of a program that the scripts cannot do without.
func lookPath(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("the scripts need %s: %v", program, err)
	}
	return path
}

// pathWithAwk returns a PATH on which awk is the program called impl.
func pathWithAwk(t testing.TB, impl string) string {
	t.Helper()
	target, err := exec.LookPath(impl)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(target, filepath.Join(dir, "awk")); err != nil {
		t.Fatal(err)
	}
	return dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

// result is what a script did.
type result struct {
	object value.Value // of stdout, null if the script failed
	stderr string
	exit   int
}

// run runs a script of the agent digest in directory dir with the given state and
// further environment.
func (ts toolset) run(t testing.TB, dir, script string, state value.Value, env ...string) result {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("agents", "digest", "scripts", script))
	if err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(ts.shell[1:]), abs)
	cmd := exec.CommandContext(t.Context(), ts.shell[0], args...)
	cmd.Dir = dir
	// What holds for Loki holds here: an unusual locale and a surprising environment
	// must not matter.
	cmd.Env = []string{"PATH=" + ts.path, "LC_ALL=C.UTF-8", "CDPATH=/", "HOME=" + dir, "PWD=" + dir, "prefix=p", "name=n"}
	text := state.AppendJSON(nil)
	if len(text) <= 32<<10 {
		cmd.Env = append(cmd.Env, "GRAPH_STATE="+string(text))
	} else {
		file := filepath.Join(t.TempDir(), "state=1 .json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "GRAPH_STATE_FILE="+file)
	}
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return result{stderr: stderr.String(), exit: exit.ExitCode()}
	}
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(stdout.Bytes()) {
		t.Errorf("%s printed invalid UTF-8", script)
	}
	object, err := value.ParseJSON(stdout.Bytes())
	if err != nil || object.Kind() != value.ObjectKind {
		t.Fatalf("%s printed no JSON object: %v\n%.2000s\nstderr: %s", script, err, stdout.String(), stderr.String())
	}
	return result{object: object, stderr: stderr.String()}
}

// text returns the string member called name, "" if there is none.
func text(t testing.TB, v value.Value, name string) string {
	t.Helper()
	member, ok := v.AsObject().Get(name)
	if !ok {
		return ""
	}
	s, ok := member.AsString()
	if !ok {
		t.Fatalf("%s is a %s, not a string", name, member.Kind())
	}
	return s
}

// number returns the member called name as decimal digits.
func number(t testing.TB, v value.Value, name string) string {
	t.Helper()
	member, ok := v.AsObject().Get(name)
	if !ok || member.Kind() != value.Int {
		t.Fatalf("%s is %s, not an integer", name, member.Text())
	}
	return member.Text()
}

// object returns an object of the given names and values, in turn.
func object(members ...any) value.Value {
	var list []value.Member
	for i := 0; i < len(members); i += 2 {
		m := value.Member{Name: members[i].(string)}
		switch v := members[i+1].(type) {
		case string:
			m.Value = value.Of(v)
		case value.Value:
			m.Value = v
		}
		list = append(list, m)
	}
	return value.ObjectOf(list...).Value()
}
