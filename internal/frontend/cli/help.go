package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
)

// elsewhere says what options of other programs are called here.
var elsewhere = map[string]string{
	"port": "--serve ADDR:PORT", "host": "--serve ADDR:PORT", "listen": "--serve ADDR:PORT",
	"json": "--output json", "max-tokens": "--max-output N", "num-predict": "--max-output N", "temp": "--temperature N",
	"system-prompt": "--system TEXT", "instructions": "--system TEXT", "reasoning": "--effort EFFORT", "think": "--effort EFFORT",
	"attach": "-f PATH", "attachment": "-f PATH", "image": "-f PATH", "url": "-f URL",
	"models": "--list models", "agents": "--list agents", "roles": "--list roles", "sessions": "--list sessions", "keys": "--list secrets", "login": "--authenticate [CLIENT]",
	"config": "--info, which names the files,", "no-color": "NO_COLOR=1",
	"yolo": "--yes", "auto-approve": "--yes", "dangerously-skip-permissions": "--yes", "full-auto": "--yes",
}

// allSections is the word by which --help shows every option.
const allSections = "all"

// examples end the help.
const examples = `
Examples:
  loki -a digest ./docs                   summarize the text files of a folder
  loki -f notes.md "what is missing?"     ask about a file
  loki -s trip "and what about trains?"   continue a session
  loki -e find the ten largest files      write a command, then run it or not
  cat log.txt | loki -m builtin:extract "5 bullets"
`

// help prints what the arguments of --help name: one section, all of them or, without a
// name, the options that most people need. It is wrapped to the terminal.
func help(cmd *cobra.Command) error {
	name := strings.Join(cmd.Flags().Args(), " ")
	shown := new(options).sections()
	if name != "" && name != allSections {
		i := slices.IndexFunc(shown, func(s section) bool { return s.name == name })
		if i < 0 {
			return fault.New(fault.Usage, "--help: there is no section %q", name).WithHint("the sections: %s, %s", names(shown), allSections)
		}
		shown = shown[i : i+1]
	}
	var b strings.Builder
	if name == "" || name == allSections {
		fmt.Fprintf(&b, "loki %s\n%s\n\nUsage: %s\n\nThe text is the prompt. All options come before it.\n", app.Version, tagline, cmd.UseLine())
	}
	width := helpWidth(cmd.OutOrStdout())
	for _, s := range shown {
		flags := s.common
		if name != "" {
			flags = s.flags()
		}
		fmt.Fprintf(&b, "\n%s:\n%s", s.title, usages(cmd.Flags(), flags, width))
	}
	if name == "" {
		fmt.Fprintf(&b, "\nMore: loki --help %s, or one of: %s\n", allSections, names(shown))
	}
	if name == "" || name == allSections {
		b.WriteString(examples)
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), strings.TrimLeft(b.String(), "\n"))
	return err
}

// names lists the names of sections.
func names(sections []section) string {
	list := make([]string, len(sections))
	for i, s := range sections {
		list[i] = s.name
	}
	return strings.Join(list, ", ")
}

// usages describes flags, one below the other, in two columns that fit into width.
func usages(all *pflag.FlagSet, flags []flagSpec, width int) string {
	var left, right []string
	column := 0
	for _, one := range flags {
		f := all.Lookup(one.name)
		value, usage := pflag.UnquoteUsage(f)
		spelled := "      --" + f.Name
		if f.Shorthand != "" {
			spelled = "  -" + f.Shorthand + ", --" + f.Name
		}
		switch {
		case value == "":
		case f.NoOptDefVal == newWorktree:
			spelled += "[=" + value + "]"
		case f.NoOptDefVal != "" && !isSwitch(f):
			spelled += " [" + value + "]"
		default:
			spelled += " " + value
		}
		left, right = append(left, spelled), append(right, usage)
		column = max(column, len(spelled)+3)
	}
	var b strings.Builder
	for i := range left {
		lines := strings.Split(text.WrapWords(right[i], max(width-column, 20)), "\n")
		fmt.Fprintf(&b, "%-*s%s\n", column, left[i], strings.Join(lines, "\n"+strings.Repeat(" ", column)))
	}
	return b.String()
}

// flagError adds to a mistake in an option where to look, or what was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	hint := "all options: loki --help " + allSections
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if option := elsewhere[unknown.GetSpecifiedName()]; option != "" {
			hint = "that is " + option + " here; " + hint
		} else if near := yamldoc.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			hint = "did you mean --" + near + "? " + hint
		}
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok && wrong.GetFlag().Hidden {
		return fault.New(fault.Usage, "invalid argument %q for %s: %v", wrong.GetValue(), flagText(wrong.GetFlag().Name), wrong.Unwrap()).WithHint("%s", hint)
	}
	return fault.Wrap(fault.Usage, err, "").WithHint("%s", hint)
}
