package display

import (
	"fmt"
	"strings"

	"loki/internal/app"
	"loki/internal/base/text"
	"loki/internal/tool/builtin/ignore"
)

// NoIgnored says that no file hides anything here.
const NoIgnored = "no file hides anything from models here: write " + ignore.Name + " in this directory"

// IgnoreFiles returns the ignore files of the working directory, as a table with what is wrong with them and as a list for programs.
func IgnoreFiles(a *app.App) (table string, list []ignore.Listed) {
	list = append([]ignore.Listed{}, a.IgnoreFiles().List()...)
	var findings strings.Builder
	table = List(nil, list, func(f ignore.Listed) []string {
		from := "tools and attachments"
		if f.Programs {
			from = "tools, attachments and programs"
		}
		for _, one := range f.Findings {
			place := one.File
			if one.Line > 0 {
				place = fmt.Sprintf("%s:%d", one.File, one.Line)
			}
			fmt.Fprintf(&findings, "%s %s\n", text.Visible(place), text.Visible(one.Problem))
		}
		return []string{text.Visible(f.File), text.Count(f.Patterns, "pattern"), fmt.Sprintf("%d hidden", f.Hidden), "from " + from}
	}, 1, 2)
	return table + findings.String(), list
}
