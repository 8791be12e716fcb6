package cases

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// stage holds copies of agents, so that cases leave the agents themselves as they are. It may be used from several
// goroutines.
type stage struct {
	root string // directory of the copies, which the caller removes
	user string // directory of the user's agents, absolute; "" for none

	mu     sync.Mutex
	places map[string]*place // by the directory that holds the agents
}

// place is a directory that holds agents, with a copy of it. In the copy are copies of the agents, and links to all else,
// since agents may use what lies beside them.
type place struct {
	dir, copied string
	agents      []string // names
}

// cast is who plays in a case.
type cast struct {
	agent  string            // directory of the copy, or the name of an installed agent
	others map[string]string // directories of copies, by the name of an agent that may be called
	places []*place
}

// cast returns the copies for the cases of an agent: of the agent, of the agents beside it, and of the user's own. An
// agent is copied once.
func (s *stage) cast(ctx context.Context, agent string) (cast, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := cast{agent: agent, others: make(map[string]string)}
	dirs := []string{s.user}
	if filepath.IsAbs(agent) {
		dirs = append(dirs, filepath.Dir(agent))
	}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		p, err := s.place(ctx, dir)
		if err != nil {
			return cast{}, err
		}
		c.places = append(c.places, p)
		for _, name := range p.agents {
			c.others[name] = filepath.Join(p.copied, name)
		}
		if filepath.IsAbs(agent) && filepath.Dir(agent) == dir {
			c.agent = filepath.Join(p.copied, filepath.Base(agent))
		}
	}
	return c, nil
}

// place returns a directory of agents with its copy, which it makes the first time. The caller holds mu.
func (s *stage) place(ctx context.Context, dir string) (*place, error) {
	if p := s.places[dir]; p != nil {
		return p, nil
	}
	p := &place{dir: dir, copied: filepath.Join(s.root, strconv.Itoa(len(s.places)+1), filepath.Base(dir))}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(p.copied, 0o700); err != nil {
		return nil, err
	}
	for _, e := range entries {
		from, to := filepath.Join(dir, e.Name()), filepath.Join(p.copied, e.Name())
		if !IsAgent(from) {
			link(from, to)
			continue
		}
		if err := copyAgent(ctx, from, to); err != nil {
			return nil, err
		}
		p.agents = append(p.agents, e.Name())
	}
	if s.places == nil {
		s.places = make(map[string]*place)
	}
	s.places[dir] = p
	return p, nil
}

// copyAgent copies the directory of an agent without its sessions and its history. A link stays one, but for one to a
// file outside, whose text is copied.
func copyAgent(ctx context.Context, from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.Name() == ".git" || rel == "sessions":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".venv"): // large, and only read
			link(path, target)
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type() == fs.ModeSymlink:
			return copyLink(path, target, from, to)
		case d.Type().IsRegular():
			return copyFile(path, target)
		}
		return nil // neither a file nor a directory: nothing that an agent brings along
	})
}

// copyLink copies a link within the copy of from that to is.
func copyLink(path, target, from, to string) error {
	means, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil // it leads nowhere
	}
	if rel, err := filepath.Rel(from, means); err == nil && filepath.IsLocal(rel) {
		link(filepath.Join(to, rel), target)
		return nil
	}
	info, err := os.Stat(means)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		link(means, target)
	case info.Mode().IsRegular():
		return copyFile(means, target)
	}
	return nil
}

// copyFile copies a file with its permissions.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// link makes a link. Where links are not allowed it is left out: few agents need what it leads to.
func link(from, to string) { _ = os.Symlink(from, to) }
