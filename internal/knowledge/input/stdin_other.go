//go:build !unix

package input

import (
	"context"
	"os"
	"time"
)

// Ready reports that f can be read, which may then wait.
func Ready(context.Context, *os.File, time.Duration) (bool, error) { return true, nil }
