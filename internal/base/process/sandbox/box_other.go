//go:build !(linux && (amd64 || arm64)) && !darwin

package sandbox

import (
	"context"
	"net"
	"os/exec"
)

// What boxes of other systems know, and Prepare takes: nothing.
type (
	hold     struct{}
	listings struct{}
	survey   struct{}
	shared   struct{}
)

func kernelSupport() Support {
	return Support{Missing: "this system has no sandbox that is known"}
}

func (b *Box) prepare(*exec.Cmd) (waits bool, err error) { return false, nil }
func (b *Box) release() error                            { return nil }
func (b *Box) end()                                      {}
func (b *Box) beginFull()                                {}
func (b *Box) leave()                                    {}

// Watch withholds nothing on other systems.
func (s *Sandbox) Watch(Declaration) (end func() []Refusal, err error) {
	return func() []Refusal { return nil }, nil
}

func (b *Box) dial(context.Context, int) (net.Conn, error) { return nil, errNotDialed }
