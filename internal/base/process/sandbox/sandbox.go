package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"

	"loki/internal/base/text/pattern"
)

// Options configure New.
type Options struct {
	Settings
	// Workspace is the directory in which the user works, absolute. It is required.
	Workspace string
	// Home is the user's home directory; empty if it is not known.
	Home string
	// Own are directories of this program: configuration, state, cache. No child below [Full] has access to them but to
	// what it was started for, see Needs.
	Own []string
	// Files are files of this program, which may be in the workspace: no child below [Full] has access to them, nor makes them.
	Files []string
	// Scripts are directories of scripts that run unconfined at a later time, wherever they are: no child below [Full] writes in them.
	Scripts []string
	// State is the directory of this program for what it keeps. Caches of children are in it, and what was moved
	// out of the workspace; empty means that neither is kept.
	State string
	// Denied are absolute patterns of files that a rule of the user denies: no child below Full reads or writes them, nor
	// what is in the directories that they match.
	Denied []pattern.Branch
	// Asked are likewise the ones that a rule asks about. A box opens them if its Needs say that the user has consented.
	Asked []pattern.Branch
	// Ignored, if set, returns what says of a file in the workspace, by its absolute path, why it is hidden from models, as .aiignore:3
	// does; "" if it is not. It is closed to children below Full, like what a rule denies. It is called before each child.
	Ignored func() (hides func(path string, dir bool) (why string)) `json:"-"`
	// IgnoreFiles are names, with a dot first, of the files that say so: no child below Full writes or makes them.
	IgnoreFiles []string
	// Getenv returns a variable of the user's environment, such as PATH; nil means that there is none.
	Getenv func(name string) string `json:"-"`
}

// Sandbox makes boxes. It may be used from several goroutines.
type Sandbox struct {
	o         Options
	workspace func() string // without symbolic links; it is found out once
	fixed     fixed
	plain     bool   // no namespaces, also where they are to be had; for tests
	looked    func() // is called when the workspace was looked at; for tests

	listings listings // of its workspace
}

// New returns a Sandbox. Nothing is looked at before the first box.
func New(o Options) *Sandbox {
	s := &Sandbox{o: o}
	s.workspace = sync.OnceValue(func() string { return s.resolve(s.o.Workspace) })
	return s
}

// Support says what the kernel holds here.
type Support struct {
	// Files says whether files are held, and with them the network and other processes. If it is false, a box confines nothing.
	Files bool
	// How names what holds it, such as "Landlock 7, seccomp, namespaces"; empty for nothing.
	How string
	// Networks says whether children can have a network of their own.
	Networks bool
	// Missing says what is not held and why, for people; empty if all is.
	Missing string
}

// Support returns what the kernel holds here. It is found out once, by the first call, which takes some milliseconds.
func (s *Sandbox) Support() Support {
	if s.o.Disabled {
		return Support{Missing: "the configuration switches the sandbox off"}
	}
	return kernelSupport()
}

// Needs are absolute places that a child gets since it was started for them, such as a script in the
// directory of tools and the file for its result.
type Needs struct {
	Read, Write []string
	// Looks says that the child changes nothing in the workspace, whatever its level.
	Looks bool
	// Lasting says that the child runs until it is stopped, as a server does. Other children do not wait for it.
	Lasting bool
	// Consented says that the user has consented to what rules ask about.
	Consented bool
	// Dialed says that this program connects to ports of the child, see [Box.Dial]. Reach leads the child to other programs, by
	// ports from 1024 on at 127.0.0.1. Both need [Support].Networks.
	Dialed bool
	Reach  map[int]Dialer `json:"-"`
}

// Copy is what another process of this program makes a box of.
type Copy struct {
	Options  Options
	Declared Declaration
	Needs    Needs
}

// Copy returns what makes the same box elsewhere. Its options lack Ignored and Getenv, and its needs Reach.
func (b *Box) Copy() *Copy {
	c := &Copy{b.s.o, b.declared, b.needs}
	c.Options.Workspace = b.s.workspace()
	return c
}

// Box confines one child. It belongs to one process.Run or process.Start, of which it is the Confinement.
type Box struct {
	s        *Sandbox
	declared Declaration
	needs    Needs
	hold     hold // what Prepare took

	// What Prepare finds out, and End.
	dir         string // of the child
	held        limits
	found       *survey // before the child; nil before that
	before      shared
	had         []string  // paths of found.moved that git tracked before the child
	notices     []Refusal // with Access Noticed
	withheld    []Refusal
	work        *os.File // the record, locked; nil without one
	workFile    string
	connections []string
}

// Box returns a box for a child that declares d, of which an empty level means [Read].
func (s *Sandbox) Box(d Declaration, needs Needs) *Box {
	if d.Level == "" {
		d.Level = Read
	}
	return &Box{s: s, declared: d, needs: needs}
}

// closedPatterns returns the patterns of the files that are closed to the child by rules.
func (b *Box) closedPatterns() []pattern.Branch {
	if b.needs.Consented {
		return b.s.o.Denied
	}
	return slices.Concat(b.s.o.Asked, b.s.o.Denied)
}

// Level returns the level of the box: [Full] where nothing is confined.
func (b *Box) Level() Level {
	if !b.s.Support().Files {
		return Full
	}
	return b.declared.Level
}

// Prepare implements process.Confinement.
func (b *Box) Prepare(cmd *exec.Cmd) (waits bool, err error) {
	if b.Level() == Full {
		b.beginFull()
		return false, nil
	}
	if waits, err = b.prepare(cmd); err != nil {
		return false, fmt.Errorf("sandbox: %w", err)
	}
	return waits, nil
}

// Release implements process.Confinement.
func (b *Box) Release() error {
	if b.Level() == Full {
		return nil
	}
	return b.release()
}

// End implements process.Confinement.
func (b *Box) End() {
	if b.Level() == Full {
		b.leave()
	} else {
		b.end()
	}
}
