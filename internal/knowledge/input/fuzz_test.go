package input

import (
	"strings"
	"testing"
)

func FuzzSplitTemplate(f *testing.F) {
	for _, seed := range []string{"pdftotext $1 -", `a "b $1" 'c $2' d\ e`, `"${1}"`, "a;b", "a|b", "$(x)", `"`, "", `a "\$1 \n"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		argv, output, err := splitTemplate(template, "the document", "the output")
		if err != nil {
			return
		}
		if len(argv) == 0 {
			t.Error("no program")
		}
		if output != strings.Contains(strings.Join(argv, " "), "the output") && !strings.Contains(template, "the output") {
			t.Errorf("%q: output %v, %q", template, output, argv)
		}
	})
}

func FuzzParsePattern(f *testing.F) {
	for _, seed := range []string{"a/**/*.{md,txt}", "**", "*/a", "/*.md", "{", "***", "a/**/", "**/*.", "*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := ParsePattern(source)
		if err == nil && !strings.Contains(source, "*") && p.Base != source {
			t.Errorf("%q became %q", source, p.Base)
		}
		_ = p.Matches("a.md")
	})
}
