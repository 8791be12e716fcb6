package job

import (
	"errors"
	"os/exec"
)

// canDetach says that jobs end with this program.
const canDetach = false

func detach(*exec.Cmd) {}

func interrupt(int) error { return errors.ErrUnsupported }
