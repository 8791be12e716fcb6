package acp

import "encoding/json"

// Version is the version of the protocol that the package has.
const Version = 1

// The methods of the side that is an agent.
const (
	Initialize      = "initialize"
	Authenticate    = "authenticate"
	SessionNew      = "session/new"
	SessionLoad     = "session/load"
	SessionResume   = "session/resume"
	SessionList     = "session/list"
	SessionClose    = "session/close"
	SessionDelete   = "session/delete"
	SessionPrompt   = "session/prompt"
	SessionCancel   = "session/cancel" // a notification
	SetMode         = "session/set_mode"
	SetConfigOption = "session/set_config_option"
)

// The methods of the side that is a client.
const (
	SessionUpdate     = "session/update" // a notification
	RequestPermission = "session/request_permission"
	ReadTextFile      = "fs/read_text_file"
	WriteTextFile     = "fs/write_text_file"
	TerminalCreate    = "terminal/create"
	TerminalOutput    = "terminal/output"
	TerminalRelease   = "terminal/release"
	TerminalWait      = "terminal/wait_for_exit"
	TerminalKill      = "terminal/kill"
	ElicitationCreate = "elicitation/create"
)

// cancelRequest is a notification of both sides, which cancels a request of the sender.
const cancelRequest = "$/cancel_request"

// The modes of elicitations.
const (
	ElicitationForm = "form"
	ElicitationURL  = "url"
)

// Supported is present where a side has an ability.
type Supported struct{}

// Implementation names a program.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// InitializeRequest begins a connection.
type InitializeRequest struct {
	ProtocolVersion    int                `json:"protocolVersion"`
	ClientCapabilities ClientCapabilities `json:"clientCapabilities,omitzero"`
	ClientInfo         *Implementation    `json:"clientInfo,omitempty"`
}

// ClientCapabilities are what a client can do for an agent.
type ClientCapabilities struct {
	FS struct {
		ReadTextFile  bool `json:"readTextFile,omitempty"`
		WriteTextFile bool `json:"writeTextFile,omitempty"`
	} `json:"fs,omitzero"`
	Terminal bool `json:"terminal,omitempty"`
	Session  struct {
		Compaction *Supported `json:"compaction,omitempty"`
		Notices    *Supported `json:"notices,omitempty"`
	} `json:"session,omitzero"`
	Auth struct {
		Terminal bool `json:"terminal,omitempty"`
	} `json:"auth,omitzero"`
	Elicitation struct {
		Form *Supported `json:"form,omitempty"`
		URL  *Supported `json:"url,omitempty"`
	} `json:"elicitation,omitzero"`
}

// InitializeResponse says what an agent can do.
type InitializeResponse struct {
	ProtocolVersion   int               `json:"protocolVersion"`
	AgentCapabilities AgentCapabilities `json:"agentCapabilities,omitzero"`
	AuthMethods       []AuthMethod      `json:"authMethods,omitempty"`
	AgentInfo         *Implementation   `json:"agentInfo,omitempty"`
}

// AgentCapabilities are what an agent can do.
type AgentCapabilities struct {
	LoadSession        bool `json:"loadSession,omitempty"`
	PromptCapabilities struct {
		Image           bool `json:"image,omitempty"`
		Audio           bool `json:"audio,omitempty"`
		EmbeddedContext bool `json:"embeddedContext,omitempty"`
	} `json:"promptCapabilities,omitzero"`
	MCPCapabilities struct {
		HTTP bool `json:"http,omitempty"`
		SSE  bool `json:"sse,omitempty"`
	} `json:"mcpCapabilities,omitzero"`
	SessionCapabilities struct {
		List                  *Supported `json:"list,omitempty"`
		Resume                *Supported `json:"resume,omitempty"`
		Close                 *Supported `json:"close,omitempty"`
		Delete                *Supported `json:"delete,omitempty"`
		AdditionalDirectories *Supported `json:"additionalDirectories,omitempty"`
	} `json:"sessionCapabilities,omitzero"`
}

// AuthMethod is a way to authenticate. Type is "terminal" for a command in a terminal, else empty.
type AuthMethod struct {
	Type        string   `json:"type,omitempty"`
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Args        []string `json:"args,omitempty"`
}

// AuthenticateRequest chooses a way to authenticate.
type AuthenticateRequest struct {
	MethodID string `json:"methodId"`
}

// EnvVariable is a variable of a process, or a header of HTTP.
type EnvVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MCPServer says how an MCP server is reached. Type is "http", "sse", or empty for a command.
type MCPServer struct {
	Type    string        `json:"type,omitempty"`
	Name    string        `json:"name"`
	Command string        `json:"command,omitempty"`
	Args    []string      `json:"args,omitzero"`
	Env     []EnvVariable `json:"env,omitzero"`
	URL     string        `json:"url,omitempty"`
	Headers []EnvVariable `json:"headers,omitzero"`
}

// NewSessionRequest begins a session.
type NewSessionRequest struct {
	Cwd                   string      `json:"cwd"`
	AdditionalDirectories []string    `json:"additionalDirectories,omitempty"`
	MCPServers            []MCPServer `json:"mcpServers"`
}

// LoadSessionRequest opens a session that there was before, for [SessionLoad] and [SessionResume].
type LoadSessionRequest struct {
	SessionID             string      `json:"sessionId"`
	Cwd                   string      `json:"cwd"`
	AdditionalDirectories []string    `json:"additionalDirectories,omitempty"`
	MCPServers            []MCPServer `json:"mcpServers,omitzero"` // required to load, optional to resume
}

// SessionResponse answers what begins or opens a session. The id is in the answer to [SessionNew] only.
type SessionResponse struct {
	SessionID     string            `json:"sessionId,omitempty"`
	Modes         *SessionModeState `json:"modes,omitempty"`
	ConfigOptions []ConfigOption    `json:"configOptions,omitempty"`
}

// SessionModeState has the modes of a session.
type SessionModeState struct {
	CurrentModeID  string        `json:"currentModeId"`
	AvailableModes []SessionMode `json:"availableModes"`
}

// SessionMode is a mode of a session.
type SessionMode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// ConfigOption is a setting of a session. Type is "select", with a text as its current value, or "boolean".
type ConfigOption struct {
	Type         string         `json:"type"`
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Description  string         `json:"description,omitempty"`
	Category     string         `json:"category,omitempty"`
	CurrentValue any            `json:"currentValue"`
	Options      []SelectOption `json:"options,omitzero"`
}

// SelectOption is a value of a setting, or a named group of values.
type SelectOption struct {
	Value       string         `json:"value,omitempty"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Group       string         `json:"group,omitempty"`
	Options     []SelectOption `json:"options,omitzero"` // of a group
}

// SetModeRequest chooses a mode.
type SetModeRequest struct {
	SessionID string `json:"sessionId"`
	ModeID    string `json:"modeId"`
}

// SetConfigOptionRequest changes a setting. Value is a text, or a boolean if Type is "boolean".
type SetConfigOptionRequest struct {
	SessionID string `json:"sessionId"`
	ConfigID  string `json:"configId"`
	Type      string `json:"type,omitempty"`
	Value     any    `json:"value"`
}

// SetConfigOptionResponse has all settings as they are then.
type SetConfigOptionResponse struct {
	ConfigOptions []ConfigOption `json:"configOptions"`
}

// SessionRequest names a session, for [SessionClose], [SessionDelete] and [SessionCancel].
type SessionRequest struct {
	SessionID string `json:"sessionId"`
}

// ListSessionsRequest asks for a page of the sessions.
type ListSessionsRequest struct {
	Cwd    string `json:"cwd,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// ListSessionsResponse is a page of the sessions.
type ListSessionsResponse struct {
	Sessions   []SessionInfo `json:"sessions"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// SessionInfo describes a session in a list.
type SessionInfo struct {
	SessionID string `json:"sessionId"`
	Cwd       string `json:"cwd"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"` // RFC 3339
}

// PromptRequest is what a user says.
type PromptRequest struct {
	SessionID string         `json:"sessionId"`
	Prompt    []ContentBlock `json:"prompt"`
}

// PromptResponse ends a turn.
type PromptResponse struct {
	StopReason string `json:"stopReason"`
}

// The reasons why a turn ended.
const (
	EndTurn         = "end_turn"
	MaxTokens       = "max_tokens"
	MaxTurnRequests = "max_turn_requests"
	Refusal         = "refusal"
	Cancelled       = "cancelled"
)

// ContentBlock is a part of a message. Type is "text", "image", "audio", "resource_link" or "resource".
type ContentBlock struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"` // of pictures and sounds, in base64
	MimeType string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Resource *Resource `json:"resource,omitempty"`
}

// Resource is the content of a file. One of Text and Blob, which is base64, is not nil.
type Resource struct {
	URI      string  `json:"uri"`
	MimeType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     *string `json:"blob,omitempty"`
}

// Text returns a text as a part of a message.
func Text(text string) ContentBlock { return ContentBlock{Type: "text", Text: text} }

// The kinds of updates.
const (
	UserMessageChunk    = "user_message_chunk"
	AgentMessageChunk   = "agent_message_chunk"
	AgentThoughtChunk   = "agent_thought_chunk"
	ToolCallBegins      = "tool_call"
	ToolCallChanges     = "tool_call_update"
	PlanUpdate          = "plan"
	CommandsUpdate      = "available_commands_update"
	ModeUpdate          = "current_mode_update"
	ConfigOptionsUpdate = "config_option_update"
	SessionInfoUpdate   = "session_info_update"
	UsageUpdate         = "usage_update"
	NoticeUpdate        = "notice"
	CompactionUpdate    = "compaction_update"
)

// SessionNotification is what happens in a session. Update is a [Chunk], [ToolCall], [Plan], [Commands], [CurrentMode], [ConfigOptions],
// [SessionTitle], [Usage], [Notice] or [Compaction]; one that was read is a pointer to one of them, or a [json.RawMessage] if its kind is unknown.
type SessionNotification struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *SessionNotification) UnmarshalJSON(data []byte) error {
	var raw struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	var kind struct {
		Kind string `json:"sessionUpdate"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw.Update, &kind); err != nil {
		return err
	}
	n.SessionID = raw.SessionID
	switch kind.Kind {
	case UserMessageChunk, AgentMessageChunk, AgentThoughtChunk:
		n.Update = new(Chunk)
	case ToolCallBegins, ToolCallChanges:
		n.Update = new(ToolCall)
	case PlanUpdate:
		n.Update = new(Plan)
	case CommandsUpdate:
		n.Update = new(Commands)
	case ModeUpdate:
		n.Update = new(CurrentMode)
	case ConfigOptionsUpdate:
		n.Update = new(ConfigOptions)
	case SessionInfoUpdate:
		n.Update = new(SessionTitle)
	case UsageUpdate:
		n.Update = new(Usage)
	case NoticeUpdate:
		n.Update = new(Notice)
	case CompactionUpdate:
		n.Update = new(Compaction)
	default:
		n.Update = raw.Update
		return nil
	}
	return json.Unmarshal(raw.Update, n.Update)
}

// Chunk is a piece of a message or a thought. Pieces with the same MessageID are those of one message.
type Chunk struct {
	Kind      string       `json:"sessionUpdate"`
	Content   ContentBlock `json:"content"`
	MessageID string       `json:"messageId,omitempty"`
}

// The states of a call of a tool, and of an entry of a plan. An entry has no failed.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
	Failed     = "failed"
)

// ToolCall is a call of a tool that begins, with a title, or what changes in one. As part of a [PermissionRequest] it has no Kind.
type ToolCall struct {
	Kind       string            `json:"sessionUpdate,omitempty"`
	ToolCallID string            `json:"toolCallId"`
	Title      string            `json:"title,omitempty"`
	Name       string            `json:"name,omitempty"`
	ToolKind   string            `json:"kind,omitempty"` // read, edit, delete, move, search, execute, think, fetch, switch_mode, other
	Status     string            `json:"status,omitempty"`
	Content    []ToolCallContent `json:"content,omitempty"` // all there is, not what is new
	Locations  []Location        `json:"locations,omitempty"`
	RawInput   json.RawMessage   `json:"rawInput,omitempty"`
	RawOutput  json.RawMessage   `json:"rawOutput,omitempty"`
}

// ToolCallContent is what a call shows. Type is "content", "diff" or "terminal".
type ToolCallContent struct {
	Type       string        `json:"type"`
	Content    *ContentBlock `json:"content,omitempty"`
	Path       string        `json:"path,omitempty"`    // of a diff
	OldText    *string       `json:"oldText,omitempty"` // of a diff; nil for a new file
	NewText    *string       `json:"newText,omitempty"` // of a diff
	TerminalID string        `json:"terminalId,omitempty"`
}

// Location is a file that a call works with. Line counts from 1; 0 is none.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// Plan is what an agent means to do, whole.
type Plan struct {
	Kind    string      `json:"sessionUpdate"`
	Entries []PlanEntry `json:"entries"`
}

// PlanEntry is a step of a plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"` // high, medium, low
	Status   string `json:"status"`
}

// Commands are the commands that a prompt can begin with, all of them.
type Commands struct {
	Kind              string    `json:"sessionUpdate"`
	AvailableCommands []Command `json:"availableCommands"`
}

// Command is one of them.
type Command struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Input       *CommandInput `json:"input,omitempty"`
}

// CommandInput says what comes after the name of a command.
type CommandInput struct {
	Hint string `json:"hint"`
}

// CurrentMode says that the mode has changed.
type CurrentMode struct {
	Kind          string `json:"sessionUpdate"`
	CurrentModeID string `json:"currentModeId"`
}

// ConfigOptions says that settings have changed.
type ConfigOptions struct {
	Kind          string         `json:"sessionUpdate"`
	ConfigOptions []ConfigOption `json:"configOptions"`
}

// SessionTitle says that the title has changed.
type SessionTitle struct {
	Kind      string `json:"sessionUpdate"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"` // RFC 3339
}

// Usage says how much of the context is used, in tokens, and what the session has cost.
type Usage struct {
	Kind string `json:"sessionUpdate"`
	Used int    `json:"used"`
	Size int    `json:"size"`
	Cost *Cost  `json:"cost,omitempty"`
}

// Cost is an amount of money.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"` // USD
}

// Notice is information for the user, for clients that have notices. Severity is info, warning or error.
type Notice struct {
	Kind        string `json:"sessionUpdate"`
	Severity    string `json:"severity"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// Compaction says that older messages are replaced by a summary, for clients that have it.
type Compaction struct {
	Kind         string         `json:"sessionUpdate"`
	CompactionID string         `json:"compactionId"`
	Status       string         `json:"status"` // in_progress, completed, failed, cancelled
	Summary      []ContentBlock `json:"summary,omitempty"`
	Error        string         `json:"error,omitempty"`
}

// PermissionRequest asks the user about a call.
type PermissionRequest struct {
	SessionID string             `json:"sessionId"`
	ToolCall  ToolCall           `json:"toolCall"`
	Options   []PermissionOption `json:"options"`
}

// PermissionOption is an answer. Kind is one of the constants below.
type PermissionOption struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// The kinds of answers about a call.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// PermissionResponse is the answer of the user.
type PermissionResponse struct {
	Outcome PermissionOutcome `json:"outcome"`
}

// PermissionOutcome is an option that was chosen. Outcome is "selected", or "cancelled" if none was.
type PermissionOutcome struct {
	Outcome  string `json:"outcome"`
	OptionID string `json:"optionId,omitempty"`
}

// ReadTextFileRequest reads a file, also what an editor has not saved.
type ReadTextFileRequest struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	Line      *int   `json:"line,omitempty"` // from 1
	Limit     *int   `json:"limit,omitempty"`
}

// ReadTextFileResponse has the content of a file.
type ReadTextFileResponse struct {
	Content string `json:"content"`
}

// WriteTextFileRequest writes a file.
type WriteTextFileRequest struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	Content   string `json:"content"`
}

// CreateTerminalRequest starts a command.
type CreateTerminalRequest struct {
	SessionID       string        `json:"sessionId"`
	Command         string        `json:"command"`
	Args            []string      `json:"args,omitempty"`
	Env             []EnvVariable `json:"env,omitempty"`
	Cwd             string        `json:"cwd,omitempty"`
	OutputByteLimit *int          `json:"outputByteLimit,omitempty"`
}

// CreateTerminalResponse names the terminal of a command.
type CreateTerminalResponse struct {
	TerminalID string `json:"terminalId"`
}

// TerminalRequest names a terminal, for [TerminalOutput], [TerminalRelease], [TerminalWait] and [TerminalKill].
type TerminalRequest struct {
	SessionID  string `json:"sessionId"`
	TerminalID string `json:"terminalId"`
}

// TerminalOutputResponse is what a command has written.
type TerminalOutputResponse struct {
	Output     string      `json:"output"`
	Truncated  bool        `json:"truncated"`
	ExitStatus *ExitStatus `json:"exitStatus,omitempty"` // nil while it runs
}

// ExitStatus is how a command ended.
type ExitStatus struct {
	ExitCode *int    `json:"exitCode,omitempty"`
	Signal   *string `json:"signal,omitempty"`
}

// ElicitationRequest asks the user a question. Mode is [ElicitationForm] or [ElicitationURL].
type ElicitationRequest struct {
	SessionID       string             `json:"sessionId,omitempty"`
	ToolCallID      string             `json:"toolCallId,omitempty"`
	Mode            string             `json:"mode"`
	Message         string             `json:"message"`
	RequestedSchema *ElicitationSchema `json:"requestedSchema,omitempty"`
	ElicitationID   string             `json:"elicitationId,omitempty"`
	URL             string             `json:"url,omitempty"`
}

// ElicitationSchema describes the form of a question.
type ElicitationSchema struct {
	Type       string              `json:"type,omitempty"` // object
	Properties map[string]Property `json:"properties,omitempty"`
	Required   []string            `json:"required,omitempty"`
}

// Property is a field of a form. Type is string, number, integer, boolean, or array for several texts out of Items.
type Property struct {
	Type        string       `json:"type"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Enum        []string     `json:"enum,omitempty"`
	OneOf       []EnumOption `json:"oneOf,omitempty"`
	Items       *Items       `json:"items,omitempty"`
	Default     any          `json:"default,omitempty"`
}

// Items are the texts of which several can be chosen.
type Items struct {
	Type  string       `json:"type,omitempty"` // string
	Enum  []string     `json:"enum,omitempty"`
	AnyOf []EnumOption `json:"anyOf,omitempty"`
}

// EnumOption is a text that can be chosen.
type EnumOption struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// ElicitationResponse is the answer of the user. Action is "accept", "decline" or "cancel".
type ElicitationResponse struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content,omitempty"`
}
