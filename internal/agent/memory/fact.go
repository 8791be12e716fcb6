package memory

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
)

// The scopes of facts: they hold for all conversations, for those in a workspace, or for those with an agent.
const (
	User      = "user"
	Workspace = "workspace"
	Agent     = "agent"
)

// Scopes returns the scopes, in the order in which facts are recalled.
func Scopes() []string { return []string{User, Workspace, Agent} }

// Limits of a fact, in characters but for the tags.
const (
	maxText  = 2000
	maxTitle = 100
	maxTag   = 40
	maxTags  = 10
)

// Who wrote a fact.
const (
	ByUser  = "user"
	ByModel = "model"
)

// Fact is something to remember, or a proposal to remember, change or forget it.
type Fact struct {
	ID      string    `json:"id"` // six hexadecimal digits
	Scope   string    `json:"scope"`
	Of      string    `json:"of,omitempty"` // the directory of the workspace or the agent, "" in the scope of the user
	Title   string    `json:"title"`
	Text    string    `json:"text"`
	Tags    []string  `json:"tags,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	By      string    `json:"by"`
	Source  Source    `json:"source,omitzero"`
	Tainted bool      `json:"tainted,omitempty"` // the conversation that wrote it had read what others wrote
	Pinned  bool      `json:"pinned,omitempty"`  // it is recalled with each question
	Expires time.Time `json:"expires,omitzero"`

	Proposed bool   `json:"proposed,omitempty"`
	Changes  string `json:"changes,omitempty"` // id of the fact that a proposal replaces or removes; "" for a new one
	Forgets  bool   `json:"forgets,omitempty"` // the proposal removes it; Text is the reason
	Base     string `json:"-"`                 // Sum of that fact when the proposal was made

	Sum  string `json:"-"` // of the file
	Path string `json:"-"` // of the file below the directory of the store
}

// Source is where a fact was written.
type Source struct {
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
	Model   string `json:"model,omitempty"`
}

// Place returns a place that has the fact.
func (f *Fact) Place() Place {
	switch f.Scope {
	case Workspace:
		return Place{Workspace: f.Of}
	case Agent:
		return Place{Agent: f.Of}
	}
	return Place{}
}

// Expired reports whether the fact is not recalled any more at a time.
func (f *Fact) Expired(now time.Time) bool { return !f.Expires.IsZero() && !now.Before(f.Expires) }

// about is the text by which the fact is found.
func (f *Fact) about() string {
	about := strings.Join(f.Tags, " ") + "\n" + f.Text
	if !strings.HasPrefix(f.Text, f.Title) {
		about = f.Title + "\n" + about
	}
	return about
}

// tidy puts the texts of a fact into the form in which they are kept, and reports what cannot be kept.
func (f *Fact) tidy() error {
	clean := func(s string) string {
		return strings.TrimSpace(text.WithoutInvisible(text.Printable(strings.ReplaceAll(s, "\r\n", "\n"))))
	}
	f.Title, f.Text = strings.Join(strings.Fields(clean(f.Title)), " "), clean(f.Text)
	tags := f.Tags
	f.Tags = nil
	for _, tag := range tags {
		if tag = strings.ToLower(strings.Join(strings.Fields(clean(tag)), " ")); tag != "" && !slices.Contains(f.Tags, tag) {
			f.Tags = append(f.Tags, tag)
		}
	}
	switch {
	case f.Text == "":
		return fmt.Errorf("there is no text to remember")
	case utf8.RuneCountInString(f.Text) > maxText:
		return fmt.Errorf("the text has %d characters, and a fact has at most %d: keep what matters, or make several facts of it", utf8.RuneCountInString(f.Text), maxText)
	case len(f.Tags) > maxTags:
		return fmt.Errorf("there are %d tags, and a fact has at most %d", len(f.Tags), maxTags)
	case slices.ContainsFunc(f.Tags, func(tag string) bool { return utf8.RuneCountInString(tag) > maxTag }):
		return fmt.Errorf("a tag has at most %d characters", maxTag)
	}
	f.Title = text.CutRunes(cmp.Or(f.Title, firstLine(f.Text)), maxTitle)
	return nil
}

// firstLine is the title of a text that got none.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return text.CutRunes(strings.Join(strings.Fields(line), " "), maxTitle)
}

// retitle leaves the title out that another version of the fact got from its text, unless f has a title of its own. [Fact.tidy] makes it anew.
func (f *Fact) retitle(before *Fact) {
	if f.Title == before.Title && f.Title == firstLine(before.Text) {
		f.Title = ""
	}
}

const fence = "---\n"

// Encode returns the file of a fact.
func (f *Fact) Encode() []byte {
	var b bytes.Buffer
	b.WriteString(fence)
	put := func(key, v string) {
		if v != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, scalar(v))
		}
	}
	flag := func(key string, v bool) {
		if v {
			b.WriteString(key + ": true\n")
		}
	}
	put("id", f.ID)
	put("title", f.Title)
	if len(f.Tags) > 0 {
		tags := make([]string, len(f.Tags))
		for i, tag := range f.Tags {
			tags[i] = scalar(tag)
		}
		fmt.Fprintf(&b, "tags: [%s]\n", strings.Join(tags, ", "))
	}
	put("created", stamp(f.Created))
	put("updated", stamp(f.Updated))
	put("by", f.By)
	if f.Source != (Source{}) {
		b.WriteString("source:\n")
		put("  session", f.Source.Session)
		put("  run", f.Source.Run)
		put("  model", f.Source.Model)
	}
	flag("tainted", f.Tainted)
	flag("pinned", f.Pinned)
	put("expires", stamp(f.Expires))
	put("changes", f.Changes)
	flag("forgets", f.Forgets)
	put("base", f.Base)
	b.WriteString(fence + f.Text + "\n")
	return b.Bytes()
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// scalar returns a text in double quotes, as YAML and JSON have it.
func scalar(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // of a text it cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}

// Decode reads the file of a fact.
func Decode(file string, data []byte) (Fact, error) {
	var f Fact
	sum := sha256.Sum256(data)
	f.Sum, f.Path = hex.EncodeToString(sum[:8]), file
	head, body, ok := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(string(text.TrimMark(data)), "\r\n", "\n"), fence), "\n"+fence)
	if !ok || !utf8.Valid(data) {
		return f, fmt.Errorf("%s: want a YAML header between two lines of --- and a text behind it", file)
	}
	f.Text = strings.TrimSpace(body)
	fields, plain := quick(head)
	if !plain {
		var err error
		if fields, err = slow(file, head); err != nil {
			return f, err
		}
	}
	var err error
	moment := func(key string) (t time.Time) {
		if v := fields[key]; v != "" {
			var wrong error
			if t, wrong = ParseMoment(v, time.Time{}); wrong != nil {
				err = fmt.Errorf("%s: %s: %w", file, key, wrong)
			}
		}
		return t
	}
	f.ID, f.Title, f.By, f.Changes, f.Base = fields["id"], fields["title"], fields["by"], fields["changes"], fields["base"]
	f.Source = Source{fields["session"], fields["run"], fields["model"]}
	f.Tainted, f.Pinned, f.Forgets = fields["tainted"] == "true", fields["pinned"] == "true", fields["forgets"] == "true"
	f.Created, f.Updated, f.Expires = moment("created"), moment("updated"), moment("expires")
	if tags := fields["tags"]; tags != "" {
		f.Tags = strings.Split(tags, "\n")
	}
	if !isID().MatchString(f.ID) {
		return f, fmt.Errorf("%s: id: want six hexadecimal digits, as the name of the file has them, not %q", file, f.ID)
	}
	return f, err
}

var isID = text.Regexp(`^[0-9a-f]{6}$`)

// quick reads a header as encode writes it. plain is false for any other. Tags are in one value, each in a line.
func quick(head string) (fields map[string]string, plain bool) {
	fields = make(map[string]string, 12)
	for line := range strings.SplitSeq(strings.TrimSuffix(head, "\n"), "\n") {
		key, v, ok := strings.Cut(strings.TrimPrefix(line, "  "), ":")
		v = strings.TrimPrefix(v, " ")
		switch {
		case !ok:
			return nil, false
		case key == "source" && v == "", v == "true":
		case key == "tags":
			var tags []string
			if json.Unmarshal([]byte(v), &tags) != nil {
				return nil, false
			}
			v = strings.Join(tags, "\n")
		default:
			if len(v) < 2 || v[0] != '"' || json.Unmarshal([]byte(v), &v) != nil {
				return nil, false
			}
		}
		fields[key] = v
	}
	return fields, true
}

// slow reads a header that a user has written.
func slow(file, head string) (map[string]string, error) {
	doc, err := yamldoc.Parse(file, []byte(head))
	if err != nil {
		return nil, err
	}
	if doc.Root().Kind() != yamldoc.Mapping {
		return nil, fmt.Errorf("%s: the header is not a mapping", file)
	}
	m := doc.Root().Map()
	fields := make(map[string]string)
	read := func(m *yamldoc.Map, keys ...string) {
		for _, key := range keys {
			if n := m.Get(key); n != nil {
				fields[key] = n.Literal()
			}
		}
	}
	read(m, "id", "title", "created", "updated", "by", "tainted", "pinned", "expires", "changes", "forgets", "base")
	if m.Has("source") {
		if source := m.Map("source"); source != nil {
			read(source, "session", "run", "model")
		}
	}
	var tags []string
	if m.Texts("tags", &tags) {
		fields["tags"] = strings.Join(tags, "\n")
	}
	return fields, doc.Err()
}

// ParseMoment reads when a fact expires: a day such as 2027-01-31, a time as in RFC 3339, or a number of days or weeks from now, such as 30d.
func ParseMoment(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	units := map[byte]int{'d': 1, 'w': 7}
	if n, err := strconv.Atoi(s[:len(s)-1]); err == nil && n > 0 && n < 10_000 && units[s[len(s)-1]] > 0 && !now.IsZero() {
		return now.AddDate(0, 0, n*units[s[len(s)-1]]).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("want a day such as 2027-01-31, or a time from now such as 30d, not %q", s)
}
