package script

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
)

// SharedDir is the name of a directory beside agents whose files their scripts may read.
const SharedDir = ".shared"

// AgentFiles are the names of scripts with the tools of an agent. The first that is there counts.
var AgentFiles = [...]string{"tools.sh", "tools.py", "tools.ts"}

// confine puts the command of a call, whose own directory is dir, into a box. It returns the box, nil for a
// command that is not confined, and what the command may do.
func (s *script) confine(c *process.Command, p *source, f function, dir string) (box *sandbox.Box, held sandbox.Declaration, err error) {
	if s.o.Sandbox == nil {
		return nil, held, nil
	}
	boxes, err := s.o.Sandbox()
	if err != nil {
		return nil, held, err
	}
	held = s.declarationOf(f)
	if s.free(f) && s.o.Apart != nil {
		c.Env = s.o.Apart(c.Env)
	}
	if held.Level == sandbox.Full {
		return nil, held, nil
	}
	needs := sandbox.Needs{Read: s.reads(c.Path), Write: []string{dir}}
	if held.Level.Covers(sandbox.Write) && bytes.Contains(p.src, []byte("_CACHE_DIR")) {
		cache := s.cacheDir()
		if err := os.MkdirAll(cache, 0o700); err != nil {
			return nil, held, err
		}
		needs.Write = append(needs.Write, cache)
	}
	if s.lang == python {
		c.Env = append(c.Env, "PYTHONDONTWRITEBYTECODE=1")
	}
	box = boxes.Box(held, needs)
	c.Confinement = box
	return box, held, nil
}

// declarationOf returns what a function may do.
func (s *script) declarationOf(f function) sandbox.Declaration {
	var bounds sandbox.Bounds
	if s.o.Bounds != nil {
		bounds = s.o.Bounds(s.file)
	}
	return bounds.Of(f.hints.Sandbox)
}

// free reports whether a function is not confined.
func (s *script) free(f function) bool {
	if s.o.Sandbox == nil {
		return true
	}
	boxes, err := s.o.Sandbox()
	return err != nil || !boxes.Support().Files || s.declarationOf(f).Level == sandbox.Full
}

// reads returns the places that a call reads beside the workspace and the system.
func (s *script) reads(interpreter string) []string {
	own := filepath.Dir(s.file)
	places := []string{own, s.o.Bin, s.o.Executable}
	if s.o.Agent != nil {
		places = append(places, Beside(own)...)
		places = append(places, filepath.Join(s.o.Root, "agents", SharedDir))
	}
	if s.o.PromptUtils != "" {
		places = append(places, filepath.Dir(s.o.PromptUtils))
	}
	if modules, _, ok := strings.Cut(interpreter, string(filepath.Separator)+".bin"+string(filepath.Separator)); ok {
		places = append(places, modules) // tsx of a package
	}
	return slices.DeleteFunc(places, func(place string) bool {
		_, err := os.Stat(place)
		return place == "" || err != nil
	})
}

// Beside returns what the scripts of an agent in dir read beside it: the files that it shares with others, and of a copy
// that is tested, which has links to what is beside the agent, all.
func Beside(dir string) []string {
	parent := filepath.Dir(dir)
	places := []string{filepath.Join(parent, SharedDir)}
	temp := os.TempDir()
	if real, err := filepath.EvalSymlinks(temp); err == nil {
		temp = real
	}
	if rel, err := filepath.Rel(temp, parent); err != nil || rel == "." || !filepath.IsLocal(rel) {
		return places
	}
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		if e.Type() == os.ModeSymlink {
			places = append(places, parent, filepath.Join(parent, e.Name()))
		}
	}
	return places
}

// outOfReach returns the error of a call whose box kept the interpreter from the script, because the file is a link that leads
// elsewhere. It is nil if the call failed otherwise.
func (s *script) outOfReach(box *sandbox.Box, held sandbox.Declaration, stderr string) error {
	target, linked := linkTarget(s.file)
	if box == nil || !linked {
		return nil
	}
	for _, refused := range box.Refusals(stderr, true) {
		if home, ok := strings.CutPrefix(refused.What, "~"); refused.What == target || ok && strings.HasSuffix(target, home) {
			return fault.New(fault.Config, "script %s is a link to %s, which the sandbox keeps from it at level %s; copy the file to %s, or add %s to trusted_dirs in config.yaml and declare in the script: @sandbox full",
				s.file, target, held.Level, filepath.Dir(s.file), filepath.Dir(target))
		}
	}
	return nil
}

// failureNote explains a failed call, whose standard error is stderr: what it lacks of its environment, and what its box stopped.
func failureNote(withheld string, box *sandbox.Box, held sandbox.Declaration, lang language, stderr string, src []byte) string {
	if box == nil {
		return withheld
	}
	mark := "# "
	if lang == typescript {
		mark = "// "
	}
	note := held.Note(box.Refusals(stderr, true), func(needed sandbox.Declaration) string {
		return "the script declares what it needs by a comment in it: " + mark + needed.Comment()
	})
	if note == "" && sandbox.StartsProgram(src) {
		note = sandbox.NeedsFull + ": " + mark + "@sandbox full"
	}
	return strings.Trim(note+"; "+withheld, "; ")
}
