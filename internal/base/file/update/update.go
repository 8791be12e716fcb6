// Package update replaces the program by another release of itself.
//
// A feed is an address below which releases are described, as GitHub does it: FEED/latest and
// FEED/tags/TAG are JSON documents with the release's tag_name and its assets, the files that it
// consists of. An asset is at its browser_download_url, which may be relative to the feed, and without
// one at FEED/download/TAG/NAME, so that a static web server can be a feed.
//
// The assets that count are one archive for each platform, checksums.txt with their SHA-256
// sums, and checksums.txt.minisig, a signature of that file by a key that the program
// has. The signature's trusted comment names the tag, so that an old release cannot be served as
// a new one. Nothing of a release is unpacked before signature and checksum have been verified, and
// nothing is replaced before the new program has run.
package update

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
)

// Set by the linker in builds that are released: see .goreleaser.yaml.
var (
	builtinFeed string
	builtinKeys string
)

// Options say what [Run] updates, and how. Version and Executable are required.
type Options struct {
	Version    string // of the running program, such as 0.1.0
	Executable string // its file, without symbolic links: see [Executable]

	Feed string // address of the feed; empty means the one that was built in
	Keys string // public minisign keys, separated by blanks, of which one has signed the release; empty means those built in

	Force bool      // also replace a file that belongs to a package manager
	Asker ask.Asker // of whom to ask about such a file; nil if no user can be asked

	Transport http.RoundTripper     // nil means one with the proxy of the process's environment
	Warn      func(text string)     // is shown warnings; required
	Progress  func(done, all int64) // of the download in bytes; all is -1 if it is unknown; nil for none

	limits limits // tests set their own
}

// limits bound what a feed can make the program do. Sizes are in bytes.
type limits struct {
	document int64 // a release's description, the checksums, a signature
	archive  int64
	program  int64         // what is unpacked
	silence  time.Duration // without a byte
	start    time.Duration // that the new program takes to print its version
}

// A description of GitHub has 2 KB for each asset; the program has about 50 MB.
var usual = limits{document: 4 << 20, archive: 256 << 20, program: 512 << 20, silence: 30 * time.Second, start: 30 * time.Second}

// Status is how an update ended.
type Status int

// The ways in which an update ends without an error.
const (
	Updated  Status = iota + 1 // the program was replaced
	UpToDate                   // there is nothing newer
	Canceled                   // the user decided against it
)

// Outcome is what [Run] did.
type Outcome struct {
	Status   Status
	From, To string // versions; To is empty if the update was canceled
}

// Text says in one line what was done.
func (o Outcome) Text() string {
	switch o.Status {
	case Updated:
		return fmt.Sprintf("Loki is updated from %s to %s. Restart it to use the new version.", o.From, o.To)
	case UpToDate:
		if o.From != o.To {
			return fmt.Sprintf("Loki %s is newer than the newest release, %s.", o.From, o.To)
		}
		return fmt.Sprintf("Loki %s is already up to date.", o.From)
	}
	return "The update was canceled."
}

// Executable returns the file of the running program, without symbolic links.
func Executable() (string, error) {
	file, err := os.Executable()
	if err == nil {
		file, err = filepath.EvalSymlinks(file)
	}
	if err != nil {
		return "", fault.Wrap(fault.Failure, err, "cannot find the file of this program")
	}
	return file, nil
}

// Tag returns the tag of the release that a user names: empty, which means the newest, for an empty text
// and "latest", and v0.4.0 for 0.4.0. Any other text is a tag.
func Tag(version string) string {
	version = strings.TrimSpace(version)
	switch {
	case version == "" || strings.EqualFold(version, "latest"):
		return ""
	case version[0] >= '0' && version[0] <= '9':
		return "v" + version
	}
	return version
}

// Run replaces the program by the release that version names, as [Tag] has it, or by the newest one. The
// newest is not installed unless it is newer than the program; a release that is named may be older. The
// file is the old program or the new one at every moment, also if the process is killed; on Windows it is
// missing for an instant between two renames.
//
// Errors are [*fault.Error] values with the code Config if the feed or the keys are missing or unusable, NotFound if
// there is no such release, Failure otherwise, or wrap ctx's error.
func Run(ctx context.Context, o Options, version string) (Outcome, error) {
	o.limits = cmp.Or(o.limits, usual)
	out := Outcome{From: o.Version}
	f, keys, err := o.source()
	if err != nil {
		return out, err
	}
	if ok, err := o.allow(ctx); err != nil || !ok {
		out.Status = Canceled
		return out, err
	}
	dir, err := workDir(o.Executable)
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	tag := Tag(version)
	r, err := f.release(ctx, tag)
	if err != nil {
		return out, err
	}
	out.To = strings.TrimPrefix(r.Tag, "v")
	own := "v" + o.Version
	order := semver.Compare(r.Tag, own)
	if known := semver.IsValid(r.Tag) && semver.IsValid(own); r.Tag == own || known && (order == 0 || tag == "" && order < 0) {
		out.Status = UpToDate
		return out, nil
	} else if known && order < 0 {
		o.Warn(fmt.Sprintf("%s is older than %s, which is running", out.To, o.Version))
	}
	program, err := o.fetch(ctx, f, r, keys, dir)
	if err != nil {
		return out, err
	}
	if err := tryOut(ctx, program, r.Tag, o.limits.start); err != nil {
		return out, err
	}
	if err := replace(program, o.Executable, runtime.GOOS); err != nil {
		return out, fault.Wrap(fault.Failure, err, "cannot replace %s", o.Executable)
	}
	out.Status = Updated
	return out, nil
}

// fetch returns the verified program of a release, as a file in dir.
func (o Options) fetch(ctx context.Context, f *feed, r release, keys []key, dir string) (string, error) {
	name := archiveName(runtime.GOOS, runtime.GOARCH)
	sums, err := f.checksums(ctx, r, keys)
	if err != nil {
		return "", err
	}
	sum, ok := sums[name]
	if !ok {
		return "", fault.New(fault.NotFound, "release %s has no %s, which this computer needs", r.Tag, name).
			WithHint("build it from its sources, or choose another release: loki --update VERSION")
	}
	archive := filepath.Join(dir, "archive")
	if err := f.download(ctx, r, name, sum, archive, o.Progress); err != nil {
		return "", err
	}
	program := filepath.Join(dir, programName(runtime.GOOS))
	if err := unpack(archive, name, program, o.limits.program); err != nil {
		return "", fault.Wrap(fault.Failure, err, "%s of release %s", name, r.Tag)
	}
	return program, nil
}

// source returns the feed and the keys in force.
func (o Options) source() (*feed, []key, error) {
	address := cmp.Or(strings.TrimSpace(o.Feed), builtinFeed)
	if address == "" {
		return nil, nil, fault.New(fault.Config, "this build does not know where its releases are").
			WithHint("set release_feed in config.yaml or LOKI_RELEASE_FEED, such as https://api.github.com/repos/OWNER/NAME/releases; more: loki --docs updates")
	}
	keys, err := parseKeys(cmp.Or(strings.TrimSpace(o.Keys), builtinKeys))
	if err != nil {
		return nil, nil, err
	}
	f, err := newFeed(address, o)
	return f, keys, err
}

// archiveName returns the name of the archive for a platform, as runtime names it.
func archiveName(goos, goarch string) string {
	arch, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[goarch]
	if !ok {
		arch = goarch
	}
	switch goos {
	case "darwin":
		return "loki-" + arch + "-apple-darwin.tar.gz"
	case "windows":
		return "loki-" + arch + "-pc-windows-msvc.zip"
	}
	return "loki-" + arch + "-unknown-" + goos + "-musl.tar.gz"
}

// programName returns the name of the program in an archive.
func programName(goos string) string {
	if goos == "windows" {
		return "loki.exe"
	}
	return "loki"
}
