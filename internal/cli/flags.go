package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loki/internal/app"
	"loki/internal/fault"
)

// options is what the command line asks for.
type options struct {
	model     string
	agent     string
	variables [][2]string // --agent-variable NAME VALUE, in order
	files     []string
	noStream  bool
	dryRun    bool
	info      bool
	validate  string
	strict    bool
	graph     string
	format    string
	output    string
	quiet     bool
	verbose   int

	listModels bool
	listAgents bool

	text []string // the free text, by words
}

// Output formats.
const (
	outputText   = "text"
	outputJSON   = "json"
	outputNDJSON = "ndjson"
)

const (
	author  = "The Loki authors"
	tagline = "Work with language models from the terminal: prompts, and workflows that can be trusted"
)

// pairFlags are the flags of two values.
var pairFlags = []string{"agent-variable"}

// newCommand returns the command that fills o and then calls run.
func newCommand(o *options, run func(*cobra.Command) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "loki [OPTIONS] [TEXT]...",
		Short:                 tagline,
		Args:                  cobra.ArbitraryArgs,
		SilenceErrors:         true,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Version:               app.Version,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.text = args
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd)
		},
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetVersionTemplate("loki {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fault.Wrap(fault.Usage, err, "").WithHint("all options: loki --help")
	})
	cmd.SetHelpFunc(help)
	o.declare(cmd.Flags())
	return cmd
}

func (o *options) declare(f *pflag.FlagSet) {
	f.SortFlags = false
	f.SetInterspersed(false)
	f.VarP(&once{value: &o.model, kind: "MODEL"}, "model", "m", "model to use, as client:model")
	f.VarP(&once{value: &o.agent, kind: "AGENT"}, "agent", "a", "run an agent: its name, or the path of its directory")
	f.Var(pairs{&o.variables}, "agent-variable", "set a variable of the agent; may be repeated")
	f.StringArrayVarP(&o.files, "file", "f", nil, "attach a file or the text files of a directory; may be repeated")
	f.BoolVarP(&o.noStream, "no-stream", "S", false, "ask for answers in one piece")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be sent to models, and send nothing")
	f.Var(&once{value: &o.output, kind: "FORMAT", check: oneOf(outputText, outputJSON, outputNDJSON)}, "output",
		"how to print the answer: text, json (one object) or ndjson (every event)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not tell how a graph run goes")
	f.CountVarP(&o.verbose, "verbose", "v", "tell more; -vv tells most")
	f.Var(&once{value: &o.validate, kind: "AGENT"}, "validate", "check the graph of an agent and exit")
	f.BoolVar(&o.strict, "strict", false, "with --validate: unknown keys and warnings are errors")
	f.Var(&once{value: &o.graph, kind: "AGENT"}, "graph", "draw the graph of an agent and exit")
	f.Var(&once{value: &o.format, kind: "FORMAT", check: oneOf(graphFormats...)}, "format", "with --graph: mermaid, dot or text")
	f.BoolVar(&o.listModels, "list-models", false, "list the chat models")
	f.BoolVar(&o.listAgents, "list-agents", false, "list the agents")
	f.BoolVar(&o.info, "info", false, "show the settings and places in use, or with -a an agent's")
	f.BoolP("help", "h", false, "show this help")
	f.BoolP("version", "V", false, "show the version")
}

// check finds combinations that make no sense.
func (o *options) check(f *pflag.FlagSet) error {
	o.output = orDefault(o.output, outputText)
	requires := func(flag, needs string) error {
		if f.Changed(flag) && !f.Changed(needs) {
			return fault.New(fault.Usage, "flag --%s goes with --%s", flag, needs)
		}
		return nil
	}
	for flag, needs := range map[string]string{"strict": "validate", "format": "graph"} {
		if err := requires(flag, needs); err != nil {
			return err
		}
	}
	if o.quiet && o.verbose > 0 {
		return fault.New(fault.Usage, "flags --quiet and --verbose contradict each other")
	}
	return nil
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// help prints the help text on standard output, wrapped to the terminal.
func help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "loki %s\n%s\n%s\n\nUsage: %s\n\n", app.Version, author, tagline, cmd.UseLine())
	fmt.Fprint(&b, "Arguments:\n  [TEXT]...   the prompt; all options come before it\n\nOptions:\n")
	b.WriteString(cmd.Flags().FlagUsagesWrapped(helpWidth(cmd.OutOrStdout())))
	b.WriteString("\nExamples:\n" +
		"  loki -a digest ./docs                  summarise the text files of a folder, offline\n" +
		"  loki -m openai:gpt-4o -f notes.md \"what is missing here?\"\n" +
		"  cat log.txt | loki -m builtin:extract \"5 bullets\"\n" +
		"  loki --graph digest --format mermaid   draw an agent's workflow\n")
	fmt.Fprint(cmd.OutOrStdout(), b.String())
}
