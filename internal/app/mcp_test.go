package app

import (
	"path/filepath"
	"testing"
)

func TestServerTokenStore(t *testing.T) {
	t.Parallel()
	a := &App{}
	files := make(map[string]string)
	for _, id := range []string{"x", "a/x", "b/x", "a:x", "a_x", `a\\x`, "a%2Fx"} {
		file := a.serverTokenStore(id).File
		if other, taken := files[file]; taken {
			t.Errorf("%q and %q share %s", id, other, file)
		}
		files[file] = id
	}
	if got := filepath.Base(a.serverTokenStore("git-hub.1").File); got != "mcp_git-hub.1_oauth_tokens.json" {
		t.Errorf("a plain id has %s", got)
	}
}
