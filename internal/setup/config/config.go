package config

import (
	"time"

	"loki/internal/base/process/sandbox"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/hook"
	"loki/internal/tool/permission"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/bulk"
	"loki/internal/workflow/schedule"
	"loki/internal/workflow/schedule/trigger"
)

// Chat has the settings of the interactive chat alone.
type Chat struct {
	Keybindings Keybindings
	LeftPrompt  *string
	RightPrompt *string
	REPLHistory bool // submissions are kept in a file
	REPLSession bool // what is said outside of sessions is remembered
	Notify      Notify
	NotifyAfter int // seconds; from 0
	// NotifyCommand is run with a notice in LOKI_NOTICE; "" for none.
	NotifyCommand string
}

// Workspace has the settings of what a workspace tells models.
type Workspace struct {
	WorkspaceInstructions Instruct
	InstructionFiles      []string         // names, of which the first that is there counts in a directory
	InstructionMaxBytes   InstructionBytes // of all together
	IgnoreFiles           IgnoreFiles      // names of files of other programs that hide files from tools and attachments
	Skills                *string          // comma list of names and patterns, "all" or "none"; nil means all where models work in files
	SkillDirs             Dirs             // that have further skills
	SkillListTokens       SkillTokens      // of the list of skills in a system message
	Memory                chat.Memory      // what models may do with what is remembered
	MemoryTokens          MemoryTokens     // of what is recalled for a question
	Jobs                  Jobs             // commands that continue after their call
}

// Automation has the settings of what happens by itself.
type Automation struct {
	Schedules []*schedule.Schedule // of runs, in the order of the file
	Hooks     []hook.Hook          // commands of the user that run at points of the work
	Triggers  []*trigger.Trigger   // in order
	Alerts    []*alert.Rule        // in order
	Retention *bulk.Retention      // which runs are forgotten; nil for none
}

// Config is what config.yaml and the environment say. It is not changed after
// [Load]. Optional settings are nil when they are unset; the package that uses one
// then has a default of its own.
type Config struct {
	File   string // where the configuration is, or would be
	Exists bool   // File was there and was read
	Blank  bool   // File is missing, or has nothing but white space and comments

	Model         string // id of the default chat model, empty for the first there is
	chat.Sampling        // where nothing else sets it
	DryRun        bool   // show what would be sent instead of sending it
	Stream        bool   // show replies while they arrive
	Save          bool   // write turns outside sessions to the message journal
	PromptLog     bool   // keep turns outside sessions as sessions without a name

	Editor    *string
	Wrap      Wrap
	WrapCode  bool
	Highlight bool
	Theme     *string // "light", or anything else for dark
	Chat
	Workspace
	MCP
	Automation

	// Where the password of the vault is. The first of these that has one counts; after
	// them comes [Paths.VaultPasswordFile].
	VaultPasswordFile    *string
	VaultPasswordCommand *string // a program and its arguments, which prints it
	VaultKeychain        bool    // the system's own store of passwords

	FunctionCallingSupport bool
	MappingTools           Mapping // alias to a comma list of tool names
	EnabledTools           *string // comma list of tools and aliases, or "all"
	VisibleTools           []string
	TrustedDirs            Dirs // agents in them are the user's own
	Permission             permission.Rules
	Sandbox                sandbox.Settings
	ToolTimeout            time.Duration // of one call; 0 leaves it to the tools
	ToolMaxOutput          int           // bytes of a call that a model gets; 0 leaves it to the tools
	MCPServerSupport       bool
	MappingMCPServers      Mapping // alias to a comma list of server names
	EnabledMCPServers      *string // comma list of servers and aliases, or "all"

	AutoContinue           bool
	MaxAutoContinues       int // for each turn of the user
	InjectTodoInstructions bool
	ContinuationPrompt     *string

	REPLPrelude          *string
	CmdPrelude           *string
	AgentSession         *string
	SaveSession          *bool
	ChatDurability       graph.Durability // what the record of a chat survives; empty for off
	Store                *string          // address of a database for sessions and runs, which may refer to secrets; nil for files
	CompressionThreshold *int             // tokens, 0 for never; nil leaves it to the model
	SummarizationPrompt  *string
	SummarizationModel   *string // id, nil for the session's own
	SummaryContextPrompt *string

	RAGEmbeddingModel *string
	RAGRerankerModel  *string
	RAGTopK           int
	RAGChunkSize      *int     // characters
	RAGChunkOverlap   *int     // characters
	RAGThreshold      *float64 // from 0 to 1
	RAGStore          *string  // address of a database, which may refer to secrets; nil for files
	RAGTemplate       *string  // with __INPUT__ and __CONTEXT__
	DocumentLoaders   Mapping  // kind of document to a command

	UserAgent        *string // see [Config.UserAgentHeader]
	SaveShellHistory bool
	UsageLog         bool // record what model calls use
	SyncModelsURL    *string
	ReleaseFeed      string // address below which new versions are; "" for the one that was built in
	ReleaseKey       string // public keys of minisign that may have signed them; likewise
	ServeAddr        *string

	API *API // how the program serves others; nil if the file does not say

	Clients []*Client // in order; of unknown types there are none

	// FromKeys says that no file and no setting names the clients: the environment has their keys.
	FromKeys bool
	// Notes are for the user, who should read each once and not with every command.
	Notes []string

	implied   []*Client // can be named although they are not configured; none if any client is
	modelFrom string    // where Model comes from: a variable, or a place in File

	secrets Secrets // nil without a vault
	places  []place // of references to secrets in File
}

// defaults returns the settings of a configuration that says nothing.
func defaults() *Config {
	return &Config{
		Stream:                 true,
		Wrap:                   WrapAuto,
		Highlight:              true,
		FunctionCallingSupport: true,
		MCPServerSupport:       true,
		MaxAutoContinues:       10,
		InjectTodoInstructions: true,
		RAGTopK:                5,
		SaveShellHistory:       true,
		UsageLog:               true,
		PromptLog:              true,
		MCP:                    MCP{MCPServer: defaultMCPServer(), ACP: ACP{true, true}},
		Workspace:              Workspace{InstructAuto, []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}, 32768, []string{".cursorignore", ".geminiignore", ".agentignore", ".agentsignore"}, nil, nil, 2000, chat.MemoryPropose, 1000, Jobs{8, 12 * time.Hour, 16 << 20}},
		Chat:                   Chat{REPLHistory: true, REPLSession: true, Notify: NotifyQuestions, NotifyAfter: 10, Keybindings: Emacs},
	}
}

// Client returns the client called name, nil if there is none. The builtin client
// is there even if it is not configured, and so are those of all known providers if no client
// is configured.
func (c *Config) Client(name string) *Client {
	if cl := c.findClient(name); cl != nil {
		return cl
	}
	for _, cl := range c.implied {
		if cl.Name == name {
			return cl
		}
	}
	if name != TypeBuiltin {
		return nil
	}
	builtin := newClient(TypeBuiltin, TypeBuiltin)
	builtin.secrets = c.secrets
	return builtin
}

func (c *Config) findClient(name string) *Client {
	for _, cl := range c.Clients {
		if cl.Name == name {
			return cl
		}
	}
	return nil
}

// ModelFrom returns where [Config.Model] comes from, for messages: an environment variable,
// or "file:line:column". It is empty if there is no such model.
func (c *Config) ModelFrom() string { return c.modelFrom }

// Catalog returns the catalog of the configured clients. A client that lists no
// models has those of its provider in known.
func (c *Config) Catalog(known ...catalog.Provider) *catalog.Catalog {
	clients := make([]catalog.Client, len(c.Clients))
	for i, cl := range c.Clients {
		clients[i] = catalog.Client{Name: cl.Name, Type: cl.Type, Models: cl.Models, Fallbacks: cl.Fallbacks}
	}
	for _, cl := range c.implied {
		clients = append(clients, catalog.Client{Name: cl.Name, Type: cl.Type, Implied: true})
	}
	return catalog.New(clients, known)
}

// UserAgentHeader returns the value of the User-Agent header, empty if none is
// configured. The setting "auto" means the program and its version.
func (c *Config) UserAgentHeader(version string) string {
	switch {
	case c.UserAgent == nil:
		return ""
	case *c.UserAgent == "auto":
		return app + "/" + version
	}
	return *c.UserAgent
}

// Dirs is a list of directories. In a variable it is written like PATH.
type Dirs []string
