package update

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTag(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"": "", " latest\n": "", "LATEST": "", "0.4.0": "v0.4.0", "v0.4.0": "v0.4.0", "nightly": "nightly", "Latest-2": "Latest-2"} {
		if got := Tag(version); got != want {
			t.Errorf("Tag(%q) = %q, want %q", version, got, want)
		}
	}
}

func TestArchiveName(t *testing.T) {
	t.Parallel()
	for platform, want := range map[string]string{
		"linux/amd64": "loki-x86_64-unknown-linux-musl.tar.gz", "linux/riscv64": "loki-riscv64-unknown-linux-musl.tar.gz",
		"darwin/arm64": "loki-aarch64-apple-darwin.tar.gz", "windows/amd64": "loki-x86_64-pc-windows-msvc.zip",
	} {
		goos, goarch, _ := strings.Cut(platform, "/")
		if got := archiveName(goos, goarch); got != want {
			t.Errorf("%s: %s, want %s", platform, got, want)
		}
	}
}

func TestManagerOf(t *testing.T) {
	t.Parallel()
	const unnamed, system = "a package manager", "the system, as its place says"
	for _, tt := range []struct{ goos, path, want string }{
		{"linux", "/home/me/.cargo/bin/loki", "Cargo"},
		{"linux", "/home/me/cargo/bin/loki", ""},
		{"linux", "/home/me/.cargo/x/bin/loki", ""},
		{"darwin", "/usr/local/Cellar/loki/0.1.0/bin/loki", "Homebrew"},
		{"darwin", "/usr/local/Caskroom/loki/0.1.0/loki", "Homebrew"},
		{"darwin", "/opt/homebrew/bin/loki", "Homebrew"},
		{"darwin", "/opt/homebrewed/bin/loki", ""},
		{"linux", "/home/linuxbrew/.linuxbrew/bin/loki", "Homebrew"},
		{"linux", "/nix/store/abc-loki-0.1.0/bin/loki", unnamed},
		{"linux", "/snap/loki/3/loki", unnamed},
		{"linux", "/home/me/go/bin/loki", "go install"},
		{"linux", "/home/me/.local/bin/loki", ""},
		{"linux", "/usr/local/bin/loki", ""},
		{"linux", "/usr/bin/loki", system},
		{"linux", "/sbin/loki", system},
		{"windows", `C:\Users\me\scoop\apps\loki\current\loki.exe`, unnamed},
		{"windows", `C:\ProgramData\Chocolatey\lib\loki\loki.exe`, unnamed},
		{"windows", `C:\Users\me\.cargo\bin\loki.exe`, "Cargo"},
		{"windows", `C:\Users\me\bin\loki.exe`, ""},
		{"linux", "/home/me/scoop/apps/loki", ""},
	} {
		if m, ok := managerOf(tt.goos, tt.path); m.name != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, want %q", tt.path, m.name, tt.want)
		}
	}
}

// TestSwap is what Windows needs, where a program that runs is renamed first: the old one comes back if
// the new one cannot take its place.
func TestSwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	executable, work := filepath.Join(dir, "loki.exe"), filepath.Join(dir, workPrefix+"1")
	program := filepath.Join(work, "loki.exe")
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		text, err := os.ReadFile(executable)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write(executable, "old")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := swap(program, executable); err == nil || read() != "old" {
		t.Errorf("without a new program: %q, %v", read(), err)
	}
	write(program, "new")
	if err := swap(program, executable); err != nil || read() != "new" {
		t.Errorf("%q, %v", read(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, oldPrefix+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestUnpackZip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive := filepath.Join(dir, "archive")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	for _, name := range []string{"bin/loki.exe", "loki.exe"} {
		member, err := w.Create(name)
		if err == nil {
			_, err = member.Write([]byte("this is " + name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	link := &zip.FileHeader{Name: "loki.lnk"}
	link.SetMode(fs.ModeSymlink | 0o777)
	if _, err := w.CreateHeader(link); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "loki.exe")
	if err := unpack(archive, "loki.zip", program, 100); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(program); err != nil || string(text) != "this is loki.exe" {
		t.Errorf("%q, %v", text, err)
	}
	if err := unpack(archive, "loki.zip", filepath.Join(dir, "loki.lnk"), 100); err == nil {
		t.Error("a symbolic link was unpacked")
	}
}

// FuzzVerify: nothing but the publisher's own text has a valid signature.
func FuzzVerify(f *testing.F) {
	const (
		key = "RWRDQ/9FhZUGqBqSmCFO2Jy+Yhu3qf4R8cXM7LYjZ8HO+lQWg1SiNMSI"
		sig = "untrusted comment: x\nRUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\ntrusted comment: loki v1\n" +
			"y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==\n"
	)
	f.Add([]byte("abc  loki.tar.gz\n"), []byte(sig), "v1", key)
	f.Fuzz(func(t *testing.T, sums, signature []byte, tag, text string) {
		keys, err := parseKeys(text)
		if err != nil {
			return
		}
		if verify(sums, signature, tag, keys) == nil {
			t.Errorf("%q has a valid signature %q", sums, signature)
		}
		_, _ = parseSums(string(sums))
	})
}
