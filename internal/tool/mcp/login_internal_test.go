package mcp

import (
	"path/filepath"
	"testing"
)

func TestServerTokenStore(t *testing.T) {
	t.Parallel()
	l := new(Logins)
	files := make(map[string]string)
	for _, id := range []string{"x", "a/x", "b/x", "a:x", "a_x", `a\\x`, "a%2Fx"} {
		file := l.store(id).File
		if other, taken := files[file]; taken {
			t.Errorf("%q and %q share %s", id, other, file)
		}
		files[file] = id
	}
	if got := filepath.Base(l.store("git-hub.1").File); got != "mcp_git-hub.1_oauth_tokens.json" {
		t.Errorf("a plain id has %s", got)
	}
}
