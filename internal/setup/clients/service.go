// Package clients makes the models of the configured clients: what asks them, within the limits of their providers,
// and records what that used.
package clients

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"golang.org/x/oauth2"

	"loki/internal/base/fault"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/engine/ledger"
	"loki/internal/llm/provider"
	"loki/internal/setup/config"
	"loki/internal/setup/config/notice"
	"loki/internal/tool/mcp/oauth"
)

// TestModel is the variable with the id of a model that answers in place of all others: tests of agents
// set it. The models that are asked for need not be configured.
const TestModel = "LOKI_TEST_MODEL"

// Options configure a Service.
type Options struct {
	Config  *config.Config
	Env     config.Env
	Paths   *config.Paths
	Catalog *catalog.Catalog
	Version string // of the program
	Named   string // the model that the command names, if any
	StandIn string // id of the model that answers in place of all, see [TestModel]; empty for none
	Notices *notice.Board
	Log     func() *slog.Logger
	Seen    func(client string) func(*oauth2.Token) // gets the tokens of a client
}

// Service makes models. Its methods may be called from several goroutines.
type Service struct {
	Options
	Replayed bool // a cassette answers in place of the models
	Governor governor.Governor

	mu      sync.Mutex
	clients map[string]connection // by client name, made on first use; guarded by mu

	meterFailed sync.Once // see meter
}

// New returns a Service, which connects to nothing yet.
func New(o Options) *Service { return &Service{Options: o, clients: make(map[string]connection)} }

// Login logs in to the client called name, and keeps the token.
func (s *Service) Login(ctx context.Context, name string, user oauth.User) error {
	c := s.Config.Client(name)
	if c == nil {
		return fault.New(fault.NotFound, "no client is called %q", name)
	}
	p, err := c.Login(s.Env)
	if err != nil {
		return err
	}
	if p == nil {
		return fault.New(fault.Config, "client %s does not log in with OAuth", name).WithHint("set auth: oauth for it in config.yaml")
	}
	of := settings{all: s, client: c}
	if p.HTTP = of.oauthHTTP(); of.err != nil {
		return of.err
	}
	token, err := oauth.Login(ctx, *p, user)
	if err != nil {
		return err
	}
	return oauth.StoreIn(s.Paths.OAuthDir, name).Save(token)
}

// Ledger returns the record of what model calls used.
func (s *Service) Ledger() ledger.Ledger {
	return ledger.Ledger{Dir: filepath.Join(s.Paths.StateDir, "usage")}
}

// UsedDays is how many days [Service.UsageSums] adds up, today included.
const UsedDays = 7

// UsageSums returns what the calls of all processes used today and in the last days. Note says why that may not be all,
// "" if it is.
func (s *Service) UsageSums() (today, days ledger.Sum, note string, err error) {
	if !s.Config.UsageLog {
		note = "usage_log is false in the configuration, so calls are not recorded"
	}
	if today, err = s.Ledger().Sum(1); err != nil {
		return today, days, note, err
	}
	days, err = s.Ledger().Sum(UsedDays)
	return today, days, note, err
}

// meter returns a function that records what calls of a model used, with their price.
func (s *Service) meter(m catalog.Model) func(chat.Usage) {
	if !s.Config.UsageLog {
		return func(chat.Usage) {}
	}
	book, cost := s.Ledger(), s.cost(m)
	return func(used chat.Usage) {
		if cost != nil {
			used = cost(used)
		}
		if err := book.Add(m.ID(), used); err != nil {
			s.meterFailed.Do(func() {
				s.Notices.Later(fmt.Sprintf("what calls use is not recorded: %v (usage_log: false in the configuration turns the record off)", err))
			})
		}
	}
}

// ErrNoList is the error of [Service.ListModels] for a client whose API has no list of models.
var ErrNoList = errors.New("its API has no list of models")

// ListModels asks the server of a client for the names of its models. It uses no tokens.
func (s *Service) ListModels(ctx context.Context, client string) ([]string, error) {
	chat, err := s.connect(client)
	if err != nil {
		return nil, err
	}
	lister, ok := chat.(provider.Lister)
	if !ok {
		return nil, ErrNoList
	}
	names, err := lister.ListModels(ctx)
	return names, s.hint(s.Config.Client(client), "")(err)
}

// TryModel sends a short question to the default model.
func (s *Service) TryModel(ctx context.Context) error {
	m, err := s.ChatModel(ctx, s.Config.Model)
	if err != nil {
		return err
	}
	question := provider.Request{Model: m.Name, Messages: []chat.Message{chat.Text(chat.User, "Answer with the word OK.")}, OutputLimit: m.OutputLimit, MaxOutputTokens: m.MaxOutputTokens}
	for _, err := range m.Provider.Chat(ctx, question) {
		if err != nil {
			return err
		}
	}
	return nil
}

// ServedModel returns the model of a type that a server's client means by an id. One that answers from a file
// which its name names does not exist for clients: the files of the server are not theirs to choose. The error is
// that of [catalog.Catalog.Resolve].
func (s *Service) ServedModel(id string, of catalog.Type) (catalog.Model, error) {
	m, err := s.Catalog.Resolve(id, of)
	if err == nil && m.NamesFile() {
		err = fault.New(fault.NotFound, "unknown %s model %q", of, id).ThatMisses("model").
			WithHint("rules come from the server's configuration only: %s:script", m.Client)
	}
	return m, err
}
