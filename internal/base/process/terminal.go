package process

import (
	"cmp"
	"os/exec"
	"time"
)

// hangUpPatience is how long a program may take to end that was asked to.
const hangUpPatience = time.Second

// RunAtTerminal runs a program that the user talks to at this process's terminal, such as an editor or a
// command of the shell. cmd comes from [exec.CommandContext]. When its context ends, the program and what
// descends from it are asked to end, as when the terminal is closed, and are killed after cmd.WaitDelay; zero
// means a second. On Windows, which has no such request, the program alone is ended. What the
// program leaves behind when it ends by itself stays. The error is that of [exec.Cmd.Run].
//
// If cmd.Stdin is the terminal and this process has it, the program gets it as from a shell: with a process
// group of its own, which the keys that send signals are for. Ctrl-Z stops this process's job with it, and both
// continue together. Afterwards the terminal has the modes that it had before.
func RunAtTerminal(cmd *exec.Cmd) error {
	kill := func() {}
	cmd.Cancel = func() (err error) {
		kill, err = hangUp(cmd.Process)
		return err
	}
	cmd.WaitDelay = cmp.Or(cmd.WaitDelay, hangUpPatience)
	err := runForeground(cmd)
	kill()
	return err
}
