package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loki/internal/app"
	"loki/internal/completion"
	"loki/internal/fault"
	"loki/internal/provider"
	"loki/internal/session"
)

// options is what the command line asks for.
type options struct {
	model     string
	agent     string
	variables [][2]string // --agent-variable NAME VALUE, in order
	files     []string
	prompt    string
	role      string
	session   string // with hasSession; "" is a temporary one
	effort    string
	schema    string
	mapFile   string
	mapOut    string
	jobs      int
	execute   bool
	code      bool
	noStream  bool
	yes       bool
	dryRun    bool

	hasSession   bool
	emptySession bool
	saveSession  bool

	info     bool
	validate string
	strict   bool
	graph    string
	format   string
	output   string
	quiet    bool
	verbose  int

	listModels   bool
	listAgents   bool
	listRoles    bool
	listSessions bool

	syncModels bool

	callTool   [][2]string // NAME JSON
	toolSchema string      // path of a file
	buildTools bool
	argcEval   string // path of a script; the text are its arguments

	install          string // one of installable
	completions      string // a shell
	shellIntegration string // a shell

	addSecret, getSecret, updateSecret, deleteSecret string
	listSecrets                                      bool
	authenticate                                     string // a client, or anyClient

	tailLogs  bool
	plainLogs bool

	resume    string // an id, or resumeNewest
	answer    string
	hasAnswer bool
	wait      bool
	answers   string // path of a file
	force     bool
	here      bool

	runs  bool
	run   string
	state bool
	step  int
	diff  [][2]string // ID@STEP ID@STEP
	fork  string
	set   []string

	prune bool
	older string
	keep  int

	text    []string // the free text, by words
	helpErr error    // of --help
}

// Output formats.
const (
	outputText   = "text"
	outputJSON   = "json"
	outputNDJSON = "ndjson"
)

const tagline = "Language models from the terminal: prompts, and workflows to be trusted"

// pairFlags are the flags of two values.
var pairFlags = []string{"agent-variable", "diff", "call-tool"}

// anyClient is the value of --authenticate without a client.
const anyClient = "(the only one)"

// vaultFlags stand alone on the command line.
var vaultFlags = []string{"add-secret", "get-secret", "update-secret", "delete-secret", "list-secrets", "authenticate"}

// restFlag is the flag whose value is followed by text, whatever it looks like.
const restFlag = "argc-eval"

// resumeNewest is the value of --resume without an id.
const resumeNewest = "newest"

// newCommand returns the command that fills o and then calls run.
func newCommand(o *options, run func(*cobra.Command) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "loki [OPTIONS] [TEXT]...",
		Short:                 tagline,
		Args:                  cobra.ArbitraryArgs,
		SilenceErrors:         true,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if version, _ := cmd.Flags().GetBool("version"); version {
				// Not by cobra's template: templates keep the linker from dropping
				// methods that nothing calls, which is a third of the binary.
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "loki "+app.Version)
				return err
			}
			o.text = args
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd)
		},
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetFlagErrorFunc(flagError)
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { o.helpErr = help(cmd) })
	o.declare(cmd.Flags())
	return cmd
}

func (o *options) declare(f *pflag.FlagSet) {
	f.SortFlags = false
	f.SetInterspersed(false)
	f.VarP(&once{value: &o.model, kind: "MODEL", check: notEmpty}, "model", "m", "model to use, as client:model")
	f.VarP(&once{value: &o.agent, kind: "AGENT", check: notEmpty}, "agent", "a", "run an agent: its name, or the path of its directory")
	f.Var(pairs{&o.variables, "NAME VALUE"}, "agent-variable", "set a variable of the agent; may be repeated")
	f.StringArrayVarP(&o.files, "file", "f", nil, "attach the file at `PATH`, or the text files of a directory; may be repeated")
	f.BoolVarP(&o.noStream, "no-stream", "S", false, "ask for answers in one piece")
	f.BoolVarP(&o.yes, "yes", "y", false, "run tools without asking; denied calls stay denied")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be sent to models, and send nothing")
	f.Var(&once{value: &o.prompt, kind: "TEXT", check: notEmpty}, "prompt", "answer under these instructions")
	f.VarP(&once{value: &o.role, kind: "ROLE", check: notEmpty}, "role", "r", "answer in a role")
	f.VarP(&once{value: &o.session, kind: "SESSION", check: notEmpty}, "session", "s", "go on with a session, or begin one; without a name a temporary one")
	f.Lookup("session").NoOptDefVal = session.TempName
	f.BoolVar(&o.emptySession, "empty-session", false, "forget the messages of the session first")
	f.BoolVar(&o.saveSession, "save-session", false, "keep the session whatever the settings say")
	f.BoolVarP(&o.execute, "execute", "e", false, "write a command for the shell, and decide what to do with it")
	f.BoolVarP(&o.code, "code", "c", false, "write code and nothing else")
	f.Var(&once{value: &o.schema, kind: "FILE", check: notEmpty}, "schema", "answer in JSON that satisfies the JSON Schema in this file")
	f.Var(&once{value: &o.mapFile, kind: "FILE", check: notEmpty}, "map", "ask once for each line of a JSON Lines file; the text is the template for its objects")
	f.Var(&once{value: &o.mapOut, kind: "FILE", check: notEmpty}, "map-out", "with --map: where the answers go, by default beside the file")
	f.IntVar(&o.jobs, "jobs", defaultJobs, "with --map: ask for `N` lines at once")
	f.Var(&once{value: &o.effort, kind: "EFFORT", values: efforts()}, "effort", "how much to reason first: "+provider.EffortNames())
	f.Var(&once{value: &o.output, kind: "FORMAT", values: []string{outputText, outputJSON, outputNDJSON}}, "output",
		"how to print the answer: text, json (one object) or ndjson (every event)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not show the progress of a run")
	f.CountVarP(&o.verbose, "verbose", "v", "``show more; -vv shows most")
	f.Var(&once{value: &o.validate, kind: "AGENT", check: notEmpty}, "validate", "check the graph of an agent and exit")
	f.BoolVar(&o.strict, "strict", false, "with --validate: unknown keys and warnings are errors")
	f.Var(&once{value: &o.graph, kind: "AGENT", check: notEmpty}, "graph", "draw the graph of an agent and exit")
	f.Var(&once{value: &o.format, kind: "FORMAT", values: graphFormats}, "format", "with --graph: mermaid, dot or text")
	f.Var(&once{check: notEmpty, value: &o.resume, kind: "ID"}, "resume", "go on with a run that did not end: this one, or the newest of this directory")
	f.Lookup("resume").NoOptDefVal = resumeNewest
	f.Var(&once{value: &o.answer, kind: "TEXT"}, "answer", "with --resume: the answer to the question that waits")
	f.Var(&once{check: notEmpty, value: &o.answers, kind: "FILE"}, "answers", "with --resume: YAML or JSON with the answers, by question")
	f.BoolVar(&o.force, "force", false, "with --resume and --fork: go on although the agent has changed; with --resume also although a part of the run is not on record")
	f.BoolVar(&o.wait, "wait", false, "with --resume: wait as long as the provider asks to, and go on then")
	f.BoolVar(&o.here, "here", false, "with --resume and --fork: go on in the present directory instead of the one the run was started in")
	f.BoolVar(&o.runs, "runs", false, "list the runs of graph agents; with -a of one agent")
	f.Var(&once{check: notEmpty, value: &o.run, kind: "ID"}, "run", "show the path and the costs of a run")
	f.BoolVar(&o.state, "state", false, "with --run: show the state")
	f.IntVar(&o.step, "step", -1, "with --state: after super-step `N` instead of the last")
	f.Var(pairs{&o.diff, "ID@STEP ID@STEP"}, "diff", "show how the states of two steps differ")
	f.Var(&once{check: notEmpty, value: &o.fork, kind: "ID@STEP"}, "fork", "begin a new run from a step of an old one")
	f.StringArrayVar(&o.set, "set", nil, "with --fork: set a state key, `KEY=JSON`; may be repeated")
	f.BoolVar(&o.prune, "runs-prune", false, "forget runs that ended, as --older and --keep say; runs at work, suspended or interrupted stay")
	f.Var(&once{value: &o.older, kind: "TIME", check: checkAge}, "older", "with --runs-prune: only runs older than this, such as 30d or 12h")
	f.IntVar(&o.keep, "keep", 0, "with --runs-prune: keep the `N` newest runs")
	f.BoolVar(&o.listModels, "list-models", false, "list the chat models")
	f.BoolVar(&o.listAgents, "list-agents", false, "list the agents")
	f.BoolVar(&o.listRoles, "list-roles", false, "list the roles")
	f.BoolVar(&o.listSessions, "list-sessions", false, "list the sessions; with -a those of an agent")
	f.BoolVar(&o.syncModels, "sync-models", false, "fetch the list of known models from sync_models_url")
	f.Var(&once{value: &o.addSecret, kind: "NAME", check: notEmpty}, "add-secret", "put a secret into the vault")
	f.Var(&once{value: &o.getSecret, kind: "SECRET", check: notEmpty}, "get-secret", "print a secret")
	f.Var(&once{value: &o.updateSecret, kind: "SECRET", check: notEmpty}, "update-secret", "change a secret")
	f.Var(&once{value: &o.deleteSecret, kind: "SECRET", check: notEmpty}, "delete-secret", "delete a secret")
	f.BoolVar(&o.listSecrets, "list-secrets", false, "list the names of the secrets")
	f.Var(&once{value: &o.authenticate, kind: "CLIENT", check: notEmpty}, "authenticate", "log in to a client with OAuth, or to an MCP server as mcp:NAME")
	f.Lookup("authenticate").NoOptDefVal = anyClient
	f.Var(pairs{&o.callTool, "NAME JSON"}, "call-tool", "run a tool with these arguments")
	f.Var(&once{value: &o.toolSchema, kind: "FILE", check: notEmpty}, "tool-schema", "show what models see of the tools in a script")
	f.BoolVar(&o.buildTools, "build-tools", false, "make the scripts of tools ready to be run by hand; with -a those of an agent")
	f.Var(&once{value: &o.argcEval, kind: "SCRIPT", check: notEmpty}, "argc-eval", "print the shell code that reads the arguments of a script")
	f.BoolVar(&o.tailLogs, "tail-logs", false, "follow the log file")
	f.BoolVar(&o.plainLogs, "disable-log-colors", false, "with --tail-logs: without colors")
	f.BoolVar(&o.info, "info", false, "show the settings and places in use, or the agent, session or role that is named")
	f.Var(&once{value: &o.install, kind: "CATEGORY", values: installable}, "install", "restore the bundled files: agents, macros, functions or mcp_config")
	f.Var(&once{value: &o.completions, kind: "SHELL", values: completion.Spellings()}, "completions", "print a script that completes options in a shell")
	f.Var(&once{value: &o.shellIntegration, kind: "SHELL", values: completion.Spellings()}, "shell-integration", "print a script that binds Alt-e to --execute in a shell")
	f.BoolP("help", "h", false, "show the common options; --help all shows every one")
	f.BoolP("version", "V", false, "show the version")
}

// check finds combinations that make no sense.
func (o *options) check(f *pflag.FlagSet) error {
	o.output = orDefault(o.output, outputText)
	o.hasAnswer = f.Changed("answer")
	o.hasSession = f.Changed("session")
	for _, pair := range [][2]string{
		{"strict", "validate"},
		{"format", "graph"},
		{"answer", "resume"},
		{"answers", "resume"},
		{"wait", "resume"},
		{"state", "run"},
		{"step", "state"},
		{"set", "fork"},
		{"older", "runs-prune"},
		{"keep", "runs-prune"},
		{"disable-log-colors", "tail-logs"},
		{"map-out", "map"},
		{"jobs", "map"},
	} {
		if f.Changed(pair[0]) && !f.Changed(pair[1]) {
			return fault.New(fault.Usage, "flag --%s goes with --%s", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"quiet", "verbose"}, {"answer", "answers"}, {"schema", "code"}, {"schema", "execute"}} {
		if f.Changed(pair[0]) && f.Changed(pair[1]) {
			return fault.New(fault.Usage, "flags --%s and --%s contradict each other", pair[0], pair[1])
		}
	}
	if o.resume == "" && o.fork == "" {
		for _, flag := range []string{"force", "here"} {
			if f.Changed(flag) {
				return fault.New(fault.Usage, "flag --%s goes with --resume and --fork", flag)
			}
		}
	} else {
		for _, flag := range []string{
			"agent", "agent-variable", "file", "dry-run", "prompt", "role", "session", "empty-session", "save-session", "execute", "code", "schema",
			"effort", "map",
		} {
			if f.Changed(flag) {
				return fault.New(fault.Usage, "flag --%s does not go with --resume and --fork: the run goes on as it began", flag)
			}
		}
		if len(o.text) > 0 {
			return fault.New(fault.Usage, "there is no text with --resume and --fork, but %q was given", strings.Join(o.text, " ")).
				WithHint("answer a question that waits with --answer TEXT")
		}
	}
	for _, flag := range vaultFlags {
		if f.Changed(flag) && (f.NFlag() > 1 && !(f.NFlag() == 2 && f.Changed("output")) || len(o.text) > 0) {
			return fault.New(fault.Usage, "flag --%s stands alone", flag)
		}
	}
	if len(o.callTool) > 1 {
		return fault.New(fault.Usage, "flag --call-tool was given before")
	}
	if o.agent != "" && !o.inspects() {
		for _, flag := range []string{"prompt", "role", "session", "empty-session", "save-session", "execute", "code", "schema", "effort"} {
			if f.Changed(flag) {
				return fault.New(fault.Usage, "flag --%s does not go with --agent: the graph says what its models are told, and remember", flag)
			}
		}
	}
	if slices.Contains(o.files, "") {
		return fault.New(fault.Usage, "flag --file: it is empty")
	}
	if o.mapFile != "" {
		for _, flag := range []string{"agent", "session", "file", "execute", "output"} {
			if f.Changed(flag) {
				return fault.New(fault.Usage, "flag --%s does not go with --map", flag)
			}
		}
		if o.jobs < 1 || o.jobs > 1000 {
			return fault.New(fault.Usage, "flag --jobs: %d is not between 1 and 1000", o.jobs)
		}
	}
	if o.keep < 0 {
		return fault.New(fault.Usage, "flag --keep: a number of runs from 0 is expected, not %d", o.keep)
	}
	if o.prune && o.older == "" && !f.Changed("keep") {
		return fault.New(fault.Usage, "flag --runs-prune needs --older TIME, --keep N or both").
			WithHint("see first what it would forget: loki --runs-prune --older 30d --dry-run")
	}
	return nil
}

// inspects reports whether the command shows something and sends nothing to a model.
func (o *options) inspects() bool {
	return o.listModels || o.listAgents || o.listRoles || o.listSessions || o.tailLogs || o.syncModels || len(o.callTool) > 0 || o.buildTools || o.toolSchema != "" || o.argcEval != "" || o.usesVault() || o.authenticate != "" || o.validate != "" || o.graph != "" || o.info
}

// usesVault reports whether the command is one of the vault.
func (o *options) usesVault() bool {
	return o.listSecrets || o.addSecret != "" || o.getSecret != "" || o.updateSecret != "" || o.deleteSecret != ""
}

func efforts() []string { return strings.Split(provider.EffortNames(), ", ") }

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
