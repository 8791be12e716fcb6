package process

import (
	"errors"
	"syscall"
)

// IsLimit reports whether an error of starting a program says that a limit of the system is reached, of file
// descriptors, processes or memory, which says nothing about the program. EBADF is what dup3(2) gives a child whose descriptors have
// numbers beyond the limit.
func IsLimit(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EAGAIN)
}
