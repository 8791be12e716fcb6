package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// Record says where the files of a bundle come from. It is kept in a file of JSON, before anything
// of the bundle is written, so that what was written is known whatever happens.
type Record struct {
	Version   int        `json:"version"` // of the form of the file, 1
	Name      string     `json:"name"`
	URL       string     `json:"url"`           // without passwords
	Ref       string     `json:"ref,omitempty"` // branch, tag or commit that was asked for; empty for the branch that the repository prefers
	Commit    string     `json:"commit"`
	Installed time.Time  `json:"installed"`
	Updated   time.Time  `json:"updated"`
	Only      []Category `json:"only,omitempty"`    // what is installed of it; empty for all
	Pending   bool       `json:"pending,omitempty"` // an installation or update has not finished
	Files     []Entry    `json:"files"`
	Servers   []Entry    `json:"servers"` // of mcp.json
}

// Entry is a file or an MCP server of a bundle.
type Entry struct {
	Path string `json:"path"`         // in the bundle, with slashes, or the name of the server there
	As   string `json:"as,omitempty"` // the name that the server has here, if it is another one
	// SHA256 is the digest of the bundle's content when it was installed or decided about, in
	// hexadecimal, empty before; of a server that of its compact JSON.
	SHA256 string `json:"sha256,omitempty"`
	Next   string `json:"next,omitempty"` // digest of what is being written
	Kept   bool   `json:"kept,omitempty"` // what is there is the user's own, and stays when the bundle is removed
}

// installed reports whether digest is that of what the bundle has put there.
func (e *Entry) installed(digest string) bool {
	return e != nil && !e.Kept && digest != "" && (digest == e.SHA256 || digest == e.Next)
}

// at returns the name that a server has here.
func (e *Entry) at() string { return cmp.Or(e.As, e.Path) }

// maxRecord is the size of the largest record that is read, in bytes.
const maxRecord = 8 << 20

// parseRecord reads a record. Its entries are as safe as those of a bundle.
func parseRecord(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, err
	}
	switch {
	case r.Version != 1:
		return Record{}, errors.New("it is of another version of the program")
	case text.FileNameFault(r.Name) != "":
		return Record{}, errors.New("its name is not valid")
	case r.URL == "":
		return Record{}, errors.New("it has no address")
	}
	for _, e := range r.Files {
		if c, ok := categoryOf(e.Path); !ok || c == MCPConfig {
			return Record{}, errors.New("it names a file that is not part of a bundle: " + text.Name(e.Path))
		}
		if err := checkPath(e.Path); err != nil {
			return Record{}, err
		}
	}
	for _, c := range r.Only {
		if !slices.Contains(Categories(), string(c)) {
			return Record{}, errors.New("it names an unknown category: " + text.Name(string(c)))
		}
	}
	return r, nil
}

// recordFile returns the file of the record called name.
func (i *Installer) recordFile(name string) string {
	return filepath.Join(i.Dirs.Records, name+".json")
}

// load returns the record of an installed bundle. The error has code NotFound if there is none.
func (i *Installer) load(name string) (Record, error) {
	file := i.recordFile(name)
	info, err := os.Stat(file)
	if text.FileNameFault(name) != "" || errors.Is(err, fs.ErrNotExist) {
		return Record{}, i.notInstalled(name)
	}
	var data []byte
	if err == nil && info.Size() > maxRecord {
		err = errors.New("it is too large")
	}
	if err == nil {
		data, err = os.ReadFile(file)
	}
	var r Record
	if err == nil {
		r, err = parseRecord(data)
	}
	if err == nil && r.Name != name {
		err = errors.New("it is the record of bundle " + text.Name(r.Name))
	}
	if err != nil {
		return Record{}, fault.Wrap(fault.Config, err, "the record of a bundle is damaged: %s", file).
			WithHint("delete the file to forget the bundle; its files stay, and a new installation recognizes the unchanged ones")
	}
	return r, nil
}

func (i *Installer) notInstalled(name string) error {
	err := fault.New(fault.NotFound, "no bundle called %s is installed", text.Name(name)).WithHint("list the installed bundles: loki --list bundles")
	names, _ := i.names()
	if near := yamldoc.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %s? loki --list bundles shows all", near)
	}
	return err
}

// names returns the names of the installed bundles, ascending.
func (i *Installer) names() ([]string, error) {
	entries, err := os.ReadDir(i.Dirs.Records)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && text.FileNameFault(name) == "" {
			names = append(names, name)
		}
	}
	return names, err
}

// List returns the installed bundles by name. Those whose record is damaged are missing; err says why.
func (i *Installer) List() ([]Record, error) {
	names, err := i.names()
	records := []Record{}
	for _, name := range names {
		r, loadErr := i.load(name)
		if loadErr != nil {
			err = errors.Join(err, loadErr)
			continue
		}
		records = append(records, r)
	}
	return records, err
}

// Owns reports whether a file, an absolute path without links, was installed with a bundle, and is not the user's own that
// the installation kept. A record that cannot be read has no files.
func (i *Installer) Owns(file string) bool {
	records, _ := i.List()
	for _, r := range records {
		for _, e := range r.Files {
			if e.Kept || filepath.Base(e.Path) != filepath.Base(file) {
				continue
			}
			if real, err := filepath.EvalSymlinks(i.Dirs.target(e.Path)); err == nil && real == file {
				return true
			}
		}
	}
	return false
}

// Names returns the names of bundles.
func Names(records []Record) []string {
	names := make([]string, len(records))
	for n, r := range records {
		names[n] = r.Name
	}
	return names
}

// Rows returns a table of bundles, the names of its columns first. Age says how long ago a time was.
func Rows(records []Record, age func(time.Time) string) [][]string {
	rows := [][]string{{"NAME", "FILES", "SERVERS", "UPDATED", "COMMIT", "FROM"}}
	for _, r := range records {
		from := r.URL
		if r.Ref != "" {
			from += "#" + r.Ref
		}
		if r.Pending {
			from += " (incomplete: an update finishes it)"
		}
		rows = append(rows, []string{r.Name, strconv.Itoa(len(r.Files)), strconv.Itoa(len(r.Servers)), age(r.Updated), r.Commit[:min(12, len(r.Commit))], from})
	}
	return rows
}

// save keeps a record.
func (i *Installer) save(r Record) error {
	r.Files, r.Servers = append([]Entry{}, r.Files...), append([]Entry{}, r.Servers...)
	data, err := value.MarshalLines(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(i.recordFile(r.Name), data, atomicfile.Options{Mode: atomicfile.Private})
}

// recordOf returns the record of the bundle at an address, or an empty one with a name that is free.
func (i *Installer) recordOf(address string) (r Record, err error) {
	all, err := i.List()
	if err != nil {
		return Record{}, err
	}
	if n := slices.IndexFunc(all, func(r Record) bool { return r.URL == address }); n >= 0 {
		return all[n], nil
	}
	names, err := i.names()
	name := freeName(nameOf(address), func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) })
	})
	return Record{Version: 1, Name: name, URL: address}, err
}

// nameOf returns what a bundle is called: the last part of its address that can be a name.
func nameOf(address string) string {
	address = strings.TrimSuffix(strings.TrimRight(address, "/"), "/.git")
	parts := strings.FieldsFunc(address, func(r rune) bool { return r == '/' || r == ':' || r == '\\' })
	for _, part := range slices.Backward(parts) {
		part = strings.TrimLeft(strings.TrimSuffix(part, ".git"), ".-")
		if text.FileNameFault(part) == "" {
			return part
		}
	}
	return "bundle"
}
