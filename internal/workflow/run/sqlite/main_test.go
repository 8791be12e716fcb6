package sqlite

import (
	"os"
	"os/exec"
	"testing"
)

// children are what the test binary does when it is started as another process.
var children = map[string]func() error{
	"drive": childDrive,
	"write": childWrite,
	"hold":  childHold,
	"burst": childBurst,
}

const childEnv = "SQLITE_TEST_CHILD"

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childEnv)]; child != nil {
		if err := child(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child returns the command of another process. env is its environment.
func child(t *testing.T, name string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), append(env, childEnv+"="+name)...)
	cmd.Stderr = os.Stderr
	return cmd
}
