package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loki/internal/app"
	"loki/internal/base/fault"
)

// printManual prints the manual page.
func (c *command) printManual(context.Context) error {
	_, err := io.WriteString(c.Out, manual())
	return err
}

// manual returns the manual page loki(1), as the macros of man(7).
func manual() string {
	flags := newCommand(new(options), func(*cobra.Command) error { return nil }).Flags()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH LOKI 1 "" "loki %s" "User Commands"`, roff(app.Version))
	line(".SH NAME\nloki \\- %s", roff(strings.ToLower(tagline[:1])+tagline[1:]))
	line(".SH SYNOPSIS\n.B loki\n[\\fIOPTIONS\\fR] [\\fITEXT\\fR]...")
	line(".SH DESCRIPTION\nThe text is the prompt. All options come before it. The answer goes to standard output, all else to standard error.")
	line(".SH OPTIONS")
	for _, s := range new(options).sections() {
		line(".SS %s", roff(s.title))
		for _, f := range s.flags() {
			spelled, usage := manualFlag(flags.Lookup(f.name))
			line(".TP\n%s\n%s", spelled, roff(sentence(usage)))
		}
	}
	line(".SH ENVIRONMENT")
	for _, v := range [][2]string{
		{"LOKI_CONFIG_DIR", "the directory of the configuration"},
		{"LOKI_*", "most settings of config.yaml: its name in capitals behind LOKI_, such as LOKI_MODEL"},
		{"COMPLETE", "a shell, for which a script that completes words is printed"},
		{"NO_COLOR", "no colors"},
	} {
		line(".TP\n.B %s\n%s", roff(v[0]), roff(sentence(v[1])))
	}
	line(".SH EXIT STATUS")
	for _, s := range statuses() {
		line(".TP\n.B %d\n%s", s.code, roff(sentence(s.meaning)))
	}
	line(".SH EXAMPLES\n.nf\n%s.fi", roff(strings.TrimPrefix(examples, "\nExamples:\n")))
	return b.String()
}

// status is an exit status.
type status struct {
	code    int
	meaning string
}

// statuses returns the exit statuses and what they mean.
func statuses() []status {
	list := []status{{0, "success"}}
	for _, s := range []struct {
		code    fault.Code
		meaning string
	}{
		{fault.Failure, "a failure without a status of its own"},
		{fault.Usage, "the command line is wrong"},
		{fault.Config, "a file of the configuration, or of an agent, is wrong"},
		{fault.NotFound, "something that was named does not exist"},
		{fault.Provider, "the maker of a model failed or refused, or its reply cannot be used"},
		{fault.Tool, "a tool or a script failed"},
		{fault.Limit, "a budget, a loop limit or a time limit was reached"},
		{fault.Suspended, "a run waits for an answer of the user, or is at a breakpoint"},
		{fault.Canceled, "the work was canceled, with Ctrl-C or a signal"},
	} {
		list = append(list, status{fault.ExitCode(&fault.Error{Code: s.code}), s.meaning})
	}
	return list
}

// sentence makes a sentence of a description.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// manualFlag returns how a flag is spelled, as a line of the manual, and what it does.
func manualFlag(f *pflag.Flag) (spelled, usage string) {
	value, usage := pflag.UnquoteUsage(f)
	if f.Shorthand != "" {
		spelled = `\fB` + roff("-"+f.Shorthand) + `\fR, `
	}
	spelled += `\fB` + roff("--"+f.Name) + `\fR`
	switch {
	case value == "":
	case f.NoOptDefVal != "" && !isSwitch(f):
		spelled += ` [\fI` + roff(value) + `\fR]`
	default:
		spelled += ` \fI` + roff(value) + `\fR`
	}
	return spelled, usage
}

// roff returns a text in which nothing is a command of roff, and hyphens can be copied into a shell.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
