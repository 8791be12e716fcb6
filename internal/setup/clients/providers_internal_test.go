package clients

import (
	"testing"

	"loki/internal/setup/config"
)

// TestMakers: every type of client that a configuration may name can be made, and every
// one that can be made may be named.
func TestMakers(t *testing.T) {
	all := makers()
	for _, typ := range config.ClientTypes() {
		if all[typ.Name] == nil {
			t.Errorf("no constructor for clients of type %s", typ.Name)
		}
		delete(all, typ.Name)
	}
	for name := range all {
		t.Errorf("the configuration knows no type %s", name)
	}
}
