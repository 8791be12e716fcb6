package process

import "os/exec"

// runForeground is cmd.Run: Windows knows no jobs of a terminal.
func runForeground(cmd *exec.Cmd) error { return cmd.Run() }
