package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestSections finds each option in exactly one section of the help.
func TestSections(t *testing.T) {
	count := map[string]int{}
	for _, s := range sections {
		for _, name := range append(s.common, s.more...) {
			count[name]++
		}
	}
	flags := newCommand(&options{}, func(*cobra.Command) error { return nil }).Flags()
	flags.VisitAll(func(f *pflag.Flag) {
		if count[f.Name] != 1 {
			t.Errorf("--%s is in %d sections", f.Name, count[f.Name])
		}
		delete(count, f.Name)
	})
	if len(count) > 0 {
		t.Errorf("options that do not exist: %v", count)
	}
}
