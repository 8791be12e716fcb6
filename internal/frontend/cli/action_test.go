package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestActionsNameFlags: what the tables of flags and actions name is a flag.
func TestActionsNameFlags(t *testing.T) {
	flags := newCommand(&options{}, func(*cobra.Command) error { return nil }).Flags()
	known := func(where string, names ...string) {
		for _, name := range names {
			if flags.Lookup(name) == nil {
				t.Errorf("%s: there is no flag --%s", where, name)
			}
		}
	}
	for _, s := range new(options).sections() {
		for _, f := range s.flags() {
			known("flag "+f.name, f.with...)
			known("flag "+f.name, f.not...)
		}
	}
	all := actions()
	for i, a := range all {
		if last := i == len(all)-1; (a.flag == "") != last {
			t.Errorf("action %d, %q: only the last needs no flag", i, a.flag)
		} else if !last {
			known("action", a.flag)
		}
		known("action "+a.flag, a.refuses...)
		if (a.do == nil) == (a.work == nil) {
			t.Errorf("action %q needs one of do and work", a.flag)
		}
	}
}
