package cli

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"loki/internal/base/file/update/updatetest"
)

type testingKey struct{}

// releases VERSION... serves signed releases of the program, the last of them as the newest, and
// has LOKI_RELEASE_FEED and LOKI_RELEASE_KEY name them. A program to update is bin/loki.
func releases(ts *testscript.TestScript, _ bool, args []string) {
	feed := updatetest.New(ts.Value(testingKey{}).(testing.TB), false)
	for _, version := range args {
		feed.Release("v"+version, releaseArchive(), updatetest.Program(version))
	}
	ts.Setenv("LOKI_RELEASE_FEED", feed.URL)
	ts.Setenv("LOKI_RELEASE_KEY", feed.Key)
	ts.Check(installSelf(ts.MkAbs("bin/loki")))
}

// releaseArchive returns the name of the archive for this computer.
func releaseArchive() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if runtime.GOOS == "darwin" {
		return "loki-" + arch + "-apple-darwin.tar.gz"
	}
	return "loki-" + arch + "-unknown-" + runtime.GOOS + "-musl.tar.gz"
}

// installSelf makes the program under test a file of its own.
func installSelf(file string) error {
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil { // what is written over cannot be executed while a fork of another test has it open
		err = os.RemoveAll(file)
	}
	if err == nil && os.Link(self, file) != nil { // another file system
		var text []byte
		if text, err = os.ReadFile(self); err == nil {
			err = os.WriteFile(file, text, 0o755)
		}
	}
	return err
}

// TestUpdateKilled ends the program with SIGKILL at moments of an update: it is the old one or the
// new one then, and the next update works.
func TestUpdateKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the new program is a script for a POSIX shell")
	}
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "bin", "loki")
	feed := updatetest.New(t, false)
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LOKI_CONFIG_DIR=" + filepath.Join(dir, "config"), "LOKI_STATE_DIR=" + filepath.Join(dir, "state"),
			"LOKI_RELEASE_FEED=" + feed.URL, "LOKI_RELEASE_KEY=" + feed.Key, "GORACE=atexit_sleep_ms=0",
		}
		return cmd
	}
	publish := func() { feed.Release("v0.2.0", releaseArchive(), updatetest.Program("0.2.0")) }
	moments := map[string]func(kill func()){
		"verified": func(func()) {
			feed.Release("v0.2.0", releaseArchive(), updatetest.Member{Name: "loki", Body: "#!/bin/sh\nkill -9 $PPID\n"})
		},
		"unpacked_whole": func(func()) {
			feed.Release("v0.2.0", releaseArchive(), updatetest.Member{Name: "loki", Body: "#!/bin/sh\necho loki 0.2.0\nkill -9 $PPID\n"})
		},
	}
	for _, path := range []string{"/latest", updatetest.Path("v0.2.0", "checksums.txt"), updatetest.Path("v0.2.0", "checksums.txt.minisig"), updatetest.Path("v0.2.0", releaseArchive())} {
		moments["at_"+filepath.Base(path)] = func(kill func()) {
			publish()
			feed.Handle(path, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(1000))
				_, _ = w.Write([]byte("a piece"))
				w.(http.Flusher).Flush()
				kill()
				<-r.Context().Done()
			})
		}
	}
	for name, prepare := range moments {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(program)
			if err := installSelf(program); err != nil {
				t.Fatal(err)
			}
			cmd := run("--update")
			started := make(chan struct{})
			prepare(func() {
				<-started
				_ = cmd.Process.Kill()
			})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
				t.Fatalf("it was not killed: %v", err)
			}
			if out, err := run("--version").Output(); err != nil || string(out) != "loki 0.1.0\n" {
				t.Errorf("afterwards: %q, %v", out, err)
			}
			publish()
			if out, err := run("--update").CombinedOutput(); err != nil {
				t.Errorf("the next update: %v, %s", err, out)
			}
			if out, err := run("--version").Output(); err != nil || string(out) != "loki 0.2.0\n" {
				t.Errorf("after the next update: %q, %v", out, err)
			}
		})
	}
}
