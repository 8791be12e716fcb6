package repl_test

import "golang.org/x/sys/unix"

const getTermios = unix.TIOCGETA
