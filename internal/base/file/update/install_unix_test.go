//go:build unix

package update

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"loki/internal/base/file/update/updatetest"
)

const nobody = 65534

// home is an empty directory of an ordinary user, who runs install.sh there.
type home struct {
	*updatetest.Feed
	dir  string
	path string // the directory with the programs that there are
	sh   []string
}

// newHome returns the home of a user who has the programs that install.sh needs, and more.
func newHome(t *testing.T, sh []string, more ...string) home {
	t.Helper()
	dir, err := os.MkdirTemp("", "loki-install") // one of t.TempDir is below one that only its owner can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := home{Feed: updatetest.New(t, false), dir: filepath.Join(dir, "home"), path: filepath.Join(dir, "programs"), sh: sh}
	for _, d := range []string{h.dir, filepath.Join(dir, "tmp"), h.path} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		for _, d := range []string{dir, h.dir, filepath.Join(dir, "tmp")} {
			if err := os.Chown(d, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	tools := strings.Fields("awk cat chmod cp cut dd grep gzip head mkdir mktemp mv rm sed sha256sum tail tar tr uname wc")
	for _, name := range append(tools, more...) {
		file, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("%s is not installed", name)
		}
		if err := os.Symlink(file, filepath.Join(h.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile("../../../../install.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "install.sh"), script, 0o644); err != nil {
		t.Fatal(err)
	}
	h.Hashed = true
	h.release("v0.2.0", updatetest.Program("0.2.0"))
	return h
}

func (h home) release(tag string, program updatetest.Member) {
	h.Release(tag, archive, program,
		updatetest.Member{Name: "loki.1.gz", Body: "the manual of " + tag},
		updatetest.Member{Name: "completions/loki.bash", Body: "for bash"})
}

// install runs install.sh, and returns what it printed and whether it succeeded. It fails the test if a temporary file is left.
func (h home) install(t *testing.T, env []string, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), h.sh[0], slices.Concat(h.sh[1:], []string{filepath.Join(filepath.Dir(h.dir), "install.sh")}, args)...)
	tmp := filepath.Join(filepath.Dir(h.dir), "tmp")
	cmd.Env = append([]string{"HOME=" + h.dir, "PATH=" + h.path, "TMPDIR=" + tmp, "LOKI_RELEASE_FEED=" + h.URL, "LOKI_RELEASE_KEY=" + h.Key}, env...)
	cmd.Dir = h.dir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.CombinedOutput()
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("%s is left in the directory for temporary files", left[0].Name())
	}
	return string(out), err == nil
}

// put writes a file of the user.
func (h home) put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(h.dir, filepath.Dir(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, path), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	for at := filepath.Join(h.dir, path); os.Getuid() == 0 && at != h.dir; at = filepath.Dir(at) {
		if err := os.Chown(at, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
}

// files returns what is installed: a line with the path and the text of each file.
func (h home) files(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(h.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		b.WriteString(strings.TrimPrefix(path, h.dir+"/") + ": " + strings.ReplaceAll(string(text), "\n", " ") + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// shells are those that install.sh is run with.
func shells() map[string][]string {
	all := make(map[string][]string)
	for _, words := range []string{"sh", "dash", "bash --posix", "busybox sh"} {
		cmd := strings.Fields(words)
		if file, err := exec.LookPath(cmd[0]); err == nil {
			all[cmd[0]] = append([]string{file}, cmd[1:]...)
		}
	}
	return all
}

func installedFiles(version string) string {
	return `.local/bin/loki: #!/bin/sh echo loki ` + version + ` 
.local/share/bash-completion/completions/loki: for bash
.local/share/man/man1/loki.1.gz: the manual of v` + version + "\n"
}

func TestInstallScript(t *testing.T) {
	t.Parallel()
	for name, sh := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, sh, "curl", "openssl")
			out, ok := h.install(t, nil)
			if !ok || !strings.Contains(out, "Installed loki 0.2.0 in "+h.dir+"/.local/bin/loki; its signature is right.") ||
				!strings.Contains(out, `export PATH="`+h.dir+`/.local/bin:$PATH"`) {
				t.Fatalf("%v\n%s", ok, out)
			}
			if got := h.files(t); got != installedFiles("0.2.0") {
				t.Errorf("installed:\n%s", got)
			}
			h.release("v0.3.0", updatetest.Program("0.3.0"))
			out, ok = h.install(t, []string{"PATH=" + h.dir + "/.local/bin:" + h.path})
			if !ok || strings.Contains(out, "PATH") || h.files(t) != installedFiles("0.3.0") {
				t.Errorf("over an old one: %v\n%s%s", ok, out, h.files(t))
			}
			if out, ok = h.install(t, nil, "0.2.0"); !ok || h.files(t) != installedFiles("0.2.0") {
				t.Errorf("a certain one: %v\n%s%s", ok, out, h.files(t))
			}
			if out, ok = h.install(t, nil, "--uninstall"); !ok || h.files(t) != "" {
				t.Errorf("uninstalled: %v\n%s%s", ok, out, h.files(t))
			}
			if out, ok = h.install(t, nil, "--uninstall"); ok || !strings.Contains(out, "nothing of Loki is below") {
				t.Errorf("uninstalled again: %v\n%s", ok, out)
			}
		})
	}
}

// TestInstallScriptAmongOthers: another program called loki is neither replaced nor removed.
func TestInstallScriptAmongOthers(t *testing.T) {
	t.Parallel()
	h := newHome(t, []string{"sh"}, "curl", "openssl")
	h.put(t, ".local/bin/loki", "#!/bin/sh\necho loki, version 2.9.1\n")
	before := h.files(t)
	for _, args := range [][]string{nil, {"--uninstall"}} {
		if out, ok := h.install(t, nil, args...); ok || !strings.Contains(out, ".local/bin/loki is not this program") || h.files(t) != before {
			t.Errorf("%q: %v\n%s%s", args, ok, out, h.files(t))
		}
	}
}

// TestInstallScriptDirectory: from a directory nothing is verified, whatever is in the environment, and no links are followed.
func TestInstallScriptDirectory(t *testing.T) {
	t.Parallel()
	h := newHome(t, []string{"sh"})
	h.put(t, "from/loki", "#!/bin/sh\necho loki 0.2.0\n")
	from := filepath.Join(h.dir, "from")
	if out, ok := h.install(t, []string{"verified=yes", "tag=v9"}, "--from", from); !ok || strings.Contains(out, "signature") {
		t.Errorf("%v\n%s", ok, out)
	}
	if out, ok := h.install(t, []string{"PREFIX=apps"}, "--from", from); !ok || !strings.Contains(h.files(t), "apps/bin/loki: ") {
		t.Errorf("a relative directory: %v\n%s\n%s", ok, out, h.files(t))
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(from, "loki.1.gz")); err != nil {
		t.Fatal(err)
	}
	if out, ok := h.install(t, nil, "--from", from); ok || !strings.Contains(out, "a symbolic link: "+from+"/loki.1.gz") || strings.Contains(h.files(t), "man1") {
		t.Errorf("a link: %v\n%s", ok, out)
	}
}

// TestInstallScriptStamped: the defaults that a release sets are those in force.
func TestInstallScriptStamped(t *testing.T) {
	t.Parallel()
	h := newHome(t, []string{"sh"}, "curl", "openssl")
	file := filepath.Join(filepath.Dir(h.dir), "install.sh")
	stamp := exec.CommandContext(t.Context(), "make", "--no-print-directory", "bin/release/install.sh", "STAMPED="+file+".out", "LOKI_RELEASE_FEED="+h.URL, "LOKI_RELEASE_KEY=RWSother "+h.Key)
	stamp.Dir = "../../../.."
	if out, err := stamp.CombinedOutput(); err != nil {
		t.Skipf("make: %v %s", err, out)
	}
	if err := os.Rename(file+".out", file); err != nil {
		t.Fatal(err)
	}
	if out, ok := h.install(t, []string{"LOKI_RELEASE_FEED=", "LOKI_RELEASE_KEY="}); !ok || !strings.Contains(out, "signature is right") {
		t.Errorf("%v\n%s", ok, out)
	}
}

// TestInstallScriptPrograms: what is done with the programs that a computer has.
func TestInstallScriptPrograms(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		programs string
		env      []string
		want     string // in the output
		fails    bool
	}{
		"wget":         {programs: "wget openssl", want: "its signature is right"},
		"none":         {programs: "openssl", want: "neither curl nor wget is installed", fails: true},
		"no_verifier":  {programs: "curl", want: "The signature was not verified: that needs minisign, or openssl 3."},
		"no_key":       {programs: "curl openssl", env: []string{"LOKI_RELEASE_KEY="}, want: "LOKI_RELEASE_KEY does not name a key"},
		"no_feed":      {programs: "curl", env: []string{"LOKI_RELEASE_FEED="}, want: "does not name a server of releases", fails: true},
		"unencrypted":  {programs: "curl", env: []string{"LOKI_RELEASE_FEED=http://127.0.0.1.example.com/x"}, want: "is not encrypted", fails: true},
		"of_a_user":    {programs: "curl", env: []string{"LOKI_RELEASE_FEED=http://127.0.0.1:1@example.com/x"}, want: "is not encrypted", fails: true},
		"other_prefix": {programs: "curl openssl", env: []string{"PREFIX=/proc/nowhere"}, want: "cannot write below /proc/nowhere", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, []string{"sh"}, strings.Fields(tt.programs)...)
			out, ok := h.install(t, tt.env)
			if ok == tt.fails || !strings.Contains(out, tt.want) {
				t.Errorf("%v\n%s", ok, out)
			}
			if got := h.files(t); (got != "") == tt.fails {
				t.Errorf("installed:\n%s", got)
			}
		})
	}
}

// TestInstallScriptRefuses: of a release that is not what its publisher signed nothing is installed, and what was is kept.
func TestInstallScriptRefuses(t *testing.T) {
	t.Parallel()
	sums, signature := updatetest.Path("v0.3.0", sumsName), updatetest.Path("v0.3.0", signatureName)
	for name, tt := range map[string]struct {
		change func(h home)
		want   string
	}{
		"archive_changed": {func(h home) { h.Serve(updatetest.Path("v0.3.0", archive), []byte("something else")) }, "the checksum of " + archive + " is wrong"},
		"cut_off": {func(h home) {
			h.Handle(updatetest.Path("v0.3.0", archive), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100000")
				_, _ = w.Write(bytes.Repeat([]byte("x"), 50000))
			})
		}, "cannot download"},
		"archive_missing": {func(h home) { h.Handle(updatetest.Path("v0.3.0", archive), http.NotFound) }, "404"},
		"other_system": {func(h home) {
			h.Release("v0.3.0", "loki-riscv64-unknown-plan9-musl.tar.gz", updatetest.Program("0.3.0"))
		}, "release v0.3.0 has no " + archive + ", which this computer needs"},
		"sums_changed":   {func(h home) { h.Serve(sums, []byte(strings.Repeat("0", 64)+"  "+archive+"\n")) }, "the signature of release v0.3.0 is wrong"},
		"unsigned":       {func(h home) { h.Handle(signature, http.NotFound) }, "checksums.txt.minisig"},
		"not_signature":  {func(h home) { h.Serve(signature, []byte("x\ny\nz\n")) }, "the signature of release v0.3.0 is wrong"},
		"other_release":  {func(h home) { h.oldRelease() }, `the signature is not for release v0.3.0, but for "loki v0.2.0"`},
		"no_program":     {func(h home) { h.release("v0.3.0", updatetest.Member{Name: "other", Body: "x"}) }, "has no program loki"},
		"link":           {func(h home) { h.release("v0.3.0", updatetest.Member{Name: "loki", Link: "/bin/sh"}) }, "is a symbolic link"},
		"does_not_run":   {func(h home) { h.release("v0.3.0", updatetest.Member{Name: "loki", Body: "#!/bin/sh\nexit 3\n"}) }, "the program does not run"},
		"other_version":  {func(h home) { h.release("v0.3.0", updatetest.Program("0.2.9")) }, `the program says that it is "loki 0.2.9"`},
		"not_a_release":  {func(h home) { h.Serve("/latest", []byte(`{"tag_name": "../../x"}`)) }, "does not describe a release"},
		"no_release":     {func(h home) { h.Handle("/latest", http.NotFound) }, "there is no release at"},
		"other_protocol": {func(h home) { h.asset("http://example.com/a") }, "http://example.com/a is not encrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, []string{"sh"}, "curl", "openssl")
			h.put(t, ".local/bin/loki", "#!/bin/sh\necho loki 0.2.0\n")
			h.put(t, ".local/share/bash-completion/completions/loki", "for bash")
			h.put(t, ".local/share/man/man1/loki.1.gz", "the manual of v0.2.0")
			h.release("v0.3.0", updatetest.Program("0.3.0"))
			tt.change(h)
			out, ok := h.install(t, nil)
			if ok || !strings.Contains(out, "install.sh: ") || !strings.Contains(out, tt.want) || strings.ContainsAny(out, "\x1b\x07") {
				t.Errorf("%v\n%s", ok, out)
			}
			if got := h.files(t); got != installedFiles("0.2.0") {
				t.Errorf("installed:\n%s", got)
			}
		})
	}
}

// TestInstallScriptAssets: a file is where the description of the release has it.
func TestInstallScriptAssets(t *testing.T) {
	t.Parallel()
	h := newHome(t, []string{"sh"}, "curl", "openssl")
	h.Hashed = false // the older form of signatures
	h.release("v0.3.0", updatetest.Program("0.3.0"))
	packed, err := http.Get(h.URL + updatetest.Path("v0.3.0", archive))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Body.Close()
	body, err := io.ReadAll(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	h.Handle(updatetest.Path("v0.3.0", archive), http.NotFound)
	for _, address := range []string{"files/the-archive", "/files/the-archive", h.URL + "/files/the-archive"} {
		h.asset(address)
		h.Handle("/files/the-archive", http.NotFound)
		if out, ok := h.install(t, nil); ok || !strings.Contains(out, "/files/the-archive: ") {
			t.Errorf("%s is missing: %v\n%s", address, ok, out)
		}
		h.Serve("/files/the-archive", body)
		if out, ok := h.install(t, nil); !ok || h.files(t) != installedFiles("0.3.0") {
			t.Errorf("%s: %v\n%s", address, ok, out)
		}
	}
}

// asset has the description of the newest release name an address of its archive, in the form of GitHub.
func (h home) asset(address string) {
	h.Serve("/latest", []byte(`{"url": "https://x", "tag_name": "v0.3.0", "name": "v0.3.0", "body": "a \"tag_name\": \"v9\", {",
  "assets": [{"name": "other", "uploader": {"login": "name"}, "browser_download_url": "https://x/y"},
  {"name": "`+archive+`", "uploader": {"login": "name"}, "size": 1, "browser_download_url": "`+address+`"}]}`))
}

// oldRelease serves the signed files of release 0.2.0 as those of 0.3.0.
func (h home) oldRelease() {
	packed := updatetest.Archive(updatetest.Program("0.2.0"))
	sums := []byte(strings.Repeat("1", 64) + "  " + archive + "\n")
	h.Serve(updatetest.Path("v0.3.0", archive), packed)
	h.Serve(updatetest.Path("v0.3.0", sumsName), sums)
	h.Serve(updatetest.Path("v0.3.0", signatureName), h.Sign(sums, "loki v0.2.0"))
}
