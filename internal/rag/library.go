package rag

import (
	"context"
	"errors"
)

// Library finds knowledge bases by name.
type Library struct {
	Dir string // NAME.db each; need not exist

	// Store returns the place that file is. Neither has to exist.
	Store func(file string) (Store, error)
}

// Names returns the names of all knowledge bases, ascending, those of older versions included.
func (l Library) Names() ([]string, error) { return nil, errors.New("not implemented") }

// File returns the file of the knowledge base called name, NAME.db, which need not exist. An
// impossible name is an error with code Usage.
func (l Library) File(name string) (string, error) { return "", errors.New("not implemented") }

// Open opens the knowledge base called name.
func (l Library) Open(ctx context.Context, name string, m Models) (*Base, error) {
	return nil, errors.New("not implemented")
}

// ReadOld returns the settings of a knowledge base that an older version wrote to a YAML file, which
// stays as it is. The error is a [fs.ErrNotExist] if there is none, and has code Config if it is
// malformed.
func ReadOld(file string) (Settings, error) { return Settings{}, errors.New("not implemented") }
