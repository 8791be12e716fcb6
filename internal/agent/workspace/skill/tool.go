package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"loki/internal/agent/workspace"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

// ToolName is the name of the tool that loads skills.
const ToolName = "skill"

// Bounds of what a model gets.
const (
	maxText  = 64 << 10 // bytes of a skill, or of one of its files
	maxNames = 200      // of files
)

// Loader is the tool that loads skills, for one question. It may be used from several goroutines.
type Loader struct {
	Skills []Skill // that can be loaded
	// Offered are the names of the skills that the model is offered. The others are loaded by the user, and the model reads their files.
	Offered []string
	// Allow asks the user about the tools that a skill lists, when it is loaded; nil asks nothing.
	Allow func(ctx context.Context, s Skill) error

	mu     sync.Mutex
	loaded map[string]string // digests of the texts that the model has, by name
}

var (
	_ tool.Tool   = (*Loader)(nil)
	_ tool.Opener = (*Loader)(nil)
)

// Offer returns what loads skills, with the ones that a setting names offered to the model, and the list of these in at most so many
// tokens: nil if the model is offered none. Unknown are the names without a skill.
func Offer(all []Skill, setting string, tokens int) (l *Loader, list string, unknown []string) {
	_, unknown = Choose(all, setting)
	usable := Usable(all)
	chosen, _ := Choose(usable, setting)
	chosen = slices.DeleteFunc(chosen, func(s Skill) bool { return s.UserOnly })
	if list = List(chosen, tokens); list == "" {
		return nil, "", unknown
	}
	l = &Loader{Skills: usable}
	for _, s := range chosen {
		l.Offered = append(l.Offered, s.Name)
	}
	return l, list, unknown
}

// Declaration implements [tool.Tool].
func (l *Loader) Declaration() chat.Tool {
	return chat.Tool{
		Name:        ToolName,
		Description: "Load a skill: its text, which tells how a task is done, and the names of its files. With file, read one of its files. Scripts of a skill are run by execute_command, with the path of its directory.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"Name of the skill."},"file":{"type":"string","description":"Name of one of its files, as the skill lists it."}},"required":["name"]}`),
	}
}

// Hints implements [tool.Tool].
func (l *Loader) Hints() tool.Hints {
	return tool.Hints{ReadOnly: true, Interactive: l.Allow != nil, MaxOutput: 4 * maxText}
}

// arguments are those of the tool.
type arguments struct{ Name, File string }

// Opens implements [tool.Opener].
func (l *Loader) Opens(call tool.Call) (files []string, use permission.Access) {
	args, err := tool.Decode[arguments](call)
	i := slices.IndexFunc(l.Skills, func(s Skill) bool { return s.Name == args.Name })
	if err != nil || i < 0 {
		return nil, permission.Reading
	}
	if args.File == "" {
		args.File = File
	}
	return []string{filepath.Join(l.Skills[i].Dir, filepath.FromSlash(args.File))}, permission.Reading
}

// Call implements [tool.Tool].
func (l *Loader) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := tool.Decode[arguments](call)
	if err != nil {
		return tool.Result{}, err
	}
	has := l.has(args.Name)
	i := slices.IndexFunc(l.Skills, func(s Skill) bool { return s.Name == args.Name })
	if i < 0 || !slices.Contains(l.Offered, args.Name) && has == "" {
		return tool.Result{}, fmt.Errorf("%s", NotFound(args.Name, slices.DeleteFunc(slices.Clone(l.Skills), func(s Skill) bool { return !slices.Contains(l.Offered, s.Name) })))
	}
	s := l.Skills[i]
	if args.File != "" && args.File != File {
		read, err := s.file(args.File)
		return tool.Result{Output: read}, err
	}
	if has == s.sum() {
		return tool.Result{Output: "already loaded: its text is above"}, nil
	}
	if l.Allow != nil {
		if err := l.Allow(ctx, s); err != nil {
			return tool.Result{}, err
		}
	}
	doc, err := value.Marshal(s.content())
	if err != nil {
		return tool.Result{}, err
	}
	l.note(s.Name, s.sum())
	return tool.Result{Output: string(doc)}, event.FromContext(ctx).Emit(ctx, s.Event("model"))
}

// Event returns the event that the skill is loaded, by the model or the user.
func (s Skill) Event(by string) event.SkillLoaded {
	return event.SkillLoaded{Name: s.Name, Directory: s.Dir, Sum: s.main.Sum, Bytes: len(s.body), By: by}
}

// sum returns the beginning of the digest of SKILL.md, which tells its versions apart.
func (s Skill) sum() string { return s.main.Sum[:12] }

// content is a skill as a model gets it.
type content struct {
	Name      string   `json:"name"`
	Directory string   `json:"directory"`
	Text      string   `json:"text"`
	Files     []string `json:"files,omitempty"`
	Sum       string   `json:"sum"` // of SKILL.md
}

func (s Skill) content() content {
	c := content{Name: s.Name, Directory: s.Dir, Text: cut(strings.TrimSpace(s.body), maxText), Sum: s.sum()}
	files, err := s.files()
	if err != nil {
		c.Files = []string{"[they cannot be read: " + err.Error() + "]"}
	}
	for i, f := range files {
		if i == maxNames {
			c.Files = append(c.Files, fmt.Sprintf("[and %d more]", len(files)-maxNames))
			break
		}
		c.Files = append(c.Files, slashPath(s.Dir, f.Path))
	}
	return c
}

// files returns the files of the skill beside SKILL.md.
func (s *Skill) files() ([]workspace.File, error) {
	if s.root == "" && s.rest == nil {
		if err := s.load(nil, nil); err != nil {
			return nil, err
		}
	}
	return s.rest, nil
}

// file returns the text of one of the files.
func (s Skill) file(name string) (string, error) {
	files, err := s.files()
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.Dir, filepath.FromSlash(name))
	i := slices.IndexFunc(files, func(f workspace.File) bool { return f.Path == path })
	if i < 0 {
		return "", fmt.Errorf("the skill %s has no file %q; load it without file to see which it has", s.Name, name)
	}
	if sum, _, err := sumOf(path, maxBytes); err != nil || sum != files[i].Sum {
		return "", fmt.Errorf("%s has changed since the skill was read; the user has to trust it first", name)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxText+1))
	if err != nil {
		return "", err
	}
	if head := string(data[:min(len(data), maxText)]); strings.Contains(head, "\x00") || !utf8.ValidString(text.Cut(head, maxText-utf8.UTFMax)) {
		return "", fmt.Errorf("%s is not a text in UTF-8; its path is %s", name, path)
	}
	return cut(string(data), maxText), nil
}

// cut returns the first bytes of a text, with a note if that is not all.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return text.Cut(s, most) + "\n[The rest is left out: it is too long.]"
}

// Block returns the skill as a part of what the user says.
func (s Skill) Block() string { return s.content().block() }

func (c content) block() string {
	files := ""
	if len(c.Files) > 0 {
		files = "\n\nFiles of the skill: " + strings.Join(c.Files, ", ")
	}
	return fmt.Sprintf("<skill name=%q directory=%q sum=%q>\n%s%s\n</skill>", c.Name, c.Directory, c.Sum, strings.ReplaceAll(c.Text, "</skill>", `<\/skill>`), files)
}

// block finds a skill in what the user said.
var block = text.Regexp(`(?s)<skill name=("(?:[^"\\]|\\.)*") directory=("(?:[^"\\]|\\.)*") sum="([0-9a-f]{12})">\n(.*?)\n</skill>`)

// loads returns the skills that messages have the texts of, oldest first, each once.
func loads(messages []chat.Message) (all []content) {
	add := func(c content) {
		all = append(slices.DeleteFunc(all, func(other content) bool { return other.Name == c.Name }), c)
	}
	for _, m := range messages {
		var c content
		switch {
		case m.Role == chat.ToolRole && m.ToolName == ToolName && !m.Failed:
			if json.Unmarshal([]byte(m.Text()), &c) == nil && c.Name != "" && c.Sum != "" {
				add(c)
			}
		case m.Role == chat.User || m.Role == chat.System: // the last has recaps
			for _, part := range block().FindAllStringSubmatch(m.Text(), -1) {
				if json.Unmarshal([]byte(part[1]), &c.Name) == nil && json.Unmarshal([]byte(part[2]), &c.Directory) == nil {
					c.Sum, c.Text = part[3], part[4]
					add(c)
				}
			}
		}
	}
	return all
}

// What a recap keeps of the skills whose texts go.
const (
	maxKept     = 3
	keptTokens  = 5000           // of each
	leftVersion = "000000000000" // of a text that is not whole, so that it can be loaded again
)

// Carry returns the texts of the skills in messages that a recap replaces: the newest ones, and the names of the others.
func Carry(gone []chat.Message) string {
	all := loads(gone)
	var parts, names []string
	for i, c := range all {
		if i < len(all)-maxKept {
			names = append(names, c.Name)
			continue
		}
		if chat.EstimateTokens(c.Text) > keptTokens {
			c.Text, c.Sum = cut(c.Text, keptTokens*4), leftVersion
		}
		parts = append(parts, c.block())
	}
	if names != nil {
		parts = append([]string{"Skills that were loaded before; load them again if they are needed: " + strings.Join(names, ", ") + "."}, parts...)
	}
	return strings.Join(parts, "\n\n")
}

// Has notes the skills that messages have the texts of: they need not be loaded again, and their files can be read.
func (l *Loader) Has(messages []chat.Message) {
	for _, c := range loads(messages) {
		l.note(c.Name, c.Sum)
	}
}

// has returns which version of a skill the model has; "" for none.
func (l *Loader) has(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loaded[name]
}

func (l *Loader) note(name, sum string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded == nil {
		l.loaded = make(map[string]string)
	}
	l.loaded[name] = sum
}

// AllowFor asks the user about the tools that a skill lists which they have loaded.
func (l *Loader) AllowFor(ctx context.Context, name string) error {
	i := slices.IndexFunc(l.Skills, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return l.Allow(ctx, l.Skills[i])
}

// Readable returns the directories of the loaded skills that are not part of the workspace.
func (l *Loader) Readable() (dirs []string) {
	for _, s := range l.Skills {
		if s.root == "" && l.has(s.Name) != "" {
			dirs = append(dirs, s.Dir)
		}
	}
	return dirs
}
