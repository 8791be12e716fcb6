// Package thirdparty_test checks the clients of remote providers against programs that
// others wrote.
//
// # Terms
//
// An official SDK is the library that a provider publishes for its own API, here its
// TypeScript edition from npm. A mock is a server that plays the providers' APIs, a
// gateway one that takes requests in one format and passes them on in another. Our
// requests have to be of the types of the official SDKs; of one and the same reply our
// clients have to make what the official SDKs make; and mock and gateway have to accept
// what we send and be understood.
//
// # What it needs
//
// node and npm. The packages that testdata/npm/package-lock.json pins are installed
// once, without running their scripts, into loki-test below the user's cache directory.
// Without node, npm or the registry the tests are skipped, as they are with -short.
// With LOKI_WIRE_OUT set to a directory of requests that the tests of the providers
// have left there, these are checked against the types too.
package thirdparty_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	installTime = 8 * time.Minute // npm asks a registry that may be slow
	runTime     = 2 * time.Minute // of one node program
	stopTime    = 5 * time.Second // of a node program that has been asked to end
)

// workshop is a directory with the scripts of testdata/npm, next to the installed
// packages.
type workshop struct {
	dir     string // the scripts and what tests add
	modules string // node_modules
	node    string // the program
}

var install = sync.OnceValues(installPackages)

// errLacking marks failures that are the machine's and no fault of ours.
var errLacking = errors.New("not available")

// newWorkshop returns a directory of the test's own, or skips the test.
func newWorkshop(t *testing.T) workshop {
	t.Helper()
	if testing.Short() {
		t.Skip("runs programs from npm")
	}
	root, err := install()
	switch {
	case errors.Is(err, errLacking):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	// Below the installation, because that is where node looks for packages.
	dir, err := os.MkdirTemp(root, "run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.CopyFS(dir, scripts{os.DirFS(filepath.Join("testdata", "npm"))}); err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is " + errLacking.Error())
	}
	return workshop{dir: dir, modules: filepath.Join(root, "node_modules"), node: node}
}

// scripts is testdata/npm without the files that belong to the installation.
type scripts struct{ fs.FS }

func (s scripts) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(s.FS, name)
	var kept []fs.DirEntry
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), "package") {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// installPackages returns the directory of the installed packages.
func installPackages() (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s is %w", program, errLacking)
		}
	}
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("node --version: %w", err)
	}
	var major int
	if _, err := fmt.Sscanf(string(out), "v%d", &major); err != nil || major < 20 {
		return "", fmt.Errorf("node 20 or newer is %w, only %s", errLacking, bytes.TrimSpace(out))
	}
	lock, err := os.ReadFile(filepath.Join("testdata", "npm", "package-lock.json"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("a cache directory is %w: %w", errLacking, err)
	}
	// Some packages bring programs for one system only.
	sum := sha256.Sum256(append(lock, runtime.GOOS+"/"+runtime.GOARCH...))
	root := filepath.Join(cache, "loki-test", hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return "", err
	}
	// Half an installation must not pass for one, and another test may be at it too.
	temp, err := os.MkdirTemp(filepath.Dir(root), "npm-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := npmCI(temp); err != nil {
		return "", err
	}
	if err := os.Rename(temp, root); err != nil {
		if _, taken := os.Stat(root); taken != nil {
			return "", err
		}
	}
	return root, nil
}

// npmCI installs the locked packages into dir.
func npmCI(dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", "npm", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTime) // shared by all tests
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")
	cmd.Dir = dir
	cmd.WaitDelay = stopTime
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the npm registry is %w: npm ci took more than %v", errLacking, installTime)
	}
	for _, code := range []string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH", "ERR_SOCKET_TIMEOUT"} {
		if bytes.Contains(out, []byte(code)) {
			return fmt.Errorf("the npm registry is %w: %s", errLacking, code)
		}
	}
	return fmt.Errorf("npm ci: %w\n%s", err, out)
}

// environ is what node programs get to see: nothing that an SDK takes for a setting.
func environ() []string {
	env := []string{"NO_PROXY=*", "NODE_ENV=test"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TMP", "TEMP", "SystemRoot", "USERPROFILE"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// run runs a node program with v as JSON on standard input, and decodes what it writes
// into result.
func (w workshop) run(t *testing.T, script string, v, result any) {
	t.Helper()
	in, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.node, script)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = w.dir, environ(), bytes.NewReader(in), stopTime
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, complaints.Bytes())
	}
	if err := json.Unmarshal(out, result); err != nil {
		t.Fatalf("%s: %v\n%s\n%s", script, err, out, complaints.Bytes())
	}
}

// serve starts a node program that writes its URL as the first line and ends with its
// standard input. The test's end stops it.
func (w workshop) serve(t *testing.T, script string, args ...string) (url string) {
	t.Helper()
	cmd := exec.Command(w.node, append([]string{script}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, environ(), stopTime
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	first := lines.Scan()
	read := make(chan struct{}) // closed when the program has closed its output
	go func() {
		defer close(read)
		for lines.Scan() { // or the program would wait for a reader
		}
	}()
	t.Cleanup(func() {
		_ = in.Close() // it may be gone
		kill := time.AfterFunc(stopTime, func() { _ = cmd.Process.Kill() })
		<-read
		err := cmd.Wait()
		kill.Stop()
		if err != nil || t.Failed() {
			t.Logf("%s: %v\n%s", script, err, complaints.Bytes())
		}
	})
	if !first {
		t.Fatalf("%s did not start", script)
	}
	return strings.TrimSpace(lines.Text())
}
