package permission

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"loki/internal/tool/builtin/ignore"
)

// ignoreRule returns the rule that denies what ignore files hide to a call, as they are now; nil if they are not about such calls. A
// program may do all at the level sandbox.Full. Ignore files themselves are only for the user to write.
func (j *Judge) ignoreRule(tool string, programs, reads bool) *Rule {
	if j.o.Ignored.Root == "" && j.o.Ignored.User == "" || strings.HasPrefix(tool, mcpPrefix) {
		return nil
	}
	files := j.o.Ignored.Rules()
	r := &Rule{Tool: "*", Action: Deny, Paths: []string{ignore.Name}, wide: true, below: j.o.Ignored.Root}
	r.hides = func(path string) (string, bool) {
		if programs {
			info, err := os.Stat(path)
			m, ok := files.HidesFromPrograms(path, err != nil || info.IsDir())
			return m.String() + " hides", ok
		}
		if m, ok := files.Hides(path); ok || reads || !files.Is(path) {
			return m.String() + " hides", ok
		}
		return "only the user changes the ignore file", true
	}
	r.twins = sync.OnceValue(r.findTwins)
	return r
}

// isProgram reports whether a tool runs a program of the model, which the sandbox holds.
func isProgram(tool string) bool { return tool == shellTool || tool == "execute_py_code" }

// why returns why the rule is about one of the files; empty for a rule of the user.
func (r *Rule) why(found []located) string {
	if r.hides == nil {
		return ""
	}
	for _, l := range found {
		for _, place := range append(l.all, l.passed...) {
			if why, ok := r.hides(place); ok {
				return why + " " + l.shown
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("an ignore file hides another name of %s", found[0].shown)
}
