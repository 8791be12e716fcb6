// Package npmtest installs programs and sources that are published with npm, for tests.
package npmtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"loki/internal/base/file/atomicfile"
)

// Install returns the directory node_modules of the package.json and package-lock.json in source. The
// packages are installed once per state of the lock file, outside of the source tree, and without
// running their scripts. The test is skipped if it is a short one or npm is missing. If the packages
// cannot be installed it is skipped too, but fails where the variable CI is set.
func Install(t testing.TB, source string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts programs from npm")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	dir, err := install(t.Context(), source)
	switch {
	case err != nil && os.Getenv("CI") != "":
		t.Fatalf("the packages cannot be installed: %v", err)
	case err != nil:
		t.Skipf("the packages cannot be installed: %v", err)
	}
	return filepath.Join(dir, "node_modules")
}

// install returns the directory above node_modules.
func install(ctx context.Context, source string) (string, error) {
	lock, err := os.ReadFile(filepath.Join(source, "package-lock.json"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "loki-test", "npm-"+hex.EncodeToString(sum[:6]))
	unlock, err := atomicfile.Lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir, nil
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "install-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := os.CopyFS(fresh, os.DirFS(source)); err != nil {
		return "", err
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = fresh
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(fresh, "complete"), nil, 0o600); err != nil {
		return "", err
	}
	return dir, os.Rename(fresh, dir)
}
