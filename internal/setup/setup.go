// Package setup makes the first configuration of a user.
//
// A provider is a source of models: a type of client, a platform that is known by
// name, or a server that runs on the user's own machine. Setting up asks which one, what
// it needs to be reached, and which model to use, and writes a configuration file. Keys
// go to the vault; the file only refers to them.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/vault"
	"loki/internal/llm/catalog"
	"loki/internal/llm/provider/local"
	"loki/internal/setup/config"
)

// ErrDeclined means that the user wants no configuration now.
var ErrDeclined = errors.New("setting up was declined")

// Vault keeps the user's keys, as package vault does it.
type Vault interface {
	List(ctx context.Context) ([]string, error)
	Get(ctx context.Context, name string) (string, error)
	Add(ctx context.Context, name, text string) error
	Update(ctx context.Context, name, text string) error
	CreatePassword(ctx context.Context, asker ask.Asker, keychain bool) (vault.Place, error)
}

// Options configure Run.
type Options struct {
	File  string    // configuration file to write; required, and must not exist unless it [Extends]
	Asker ask.Asker // required
	Vault Vault     // required

	VaultFile string // where the vault keeps keys, for the last line
	Keychain  bool   // a new password of the vault goes to the keychain of the system if that works
	Wanted    bool   // the user has asked for it, so that Run need not ask whether to begin

	// Load reads the configuration in force, with that of File as it is at the moment; required for Change.
	Load func() (*config.Config, error)

	Servers []local.Server           // the ones that answer on this machine, offered first
	Known   []catalog.Provider       // lists of known models
	Today   time.Time                // decides which of them are retired; zero for none
	HTTP    *http.Client             // asks servers for their models; nil is http.DefaultClient
	Getenv  func(name string) string // "" if a variable is not set; nil for none
	Note    func(text string)        // shows the user a note; nil shows nothing
	Timeout time.Duration            // of a request for models; 0 means [DefaultTimeout]
}

// DefaultTimeout bounds how long a server may take to list its models.
const DefaultTimeout = 16 * time.Second

// Result says what was configured.
type Result struct {
	File  string // the configuration file
	Model string // id of the default model, empty if there is none for chat
}

// Run asks for everything and writes the configuration file, at the end and never over
// another one. To one that neither names a model nor lists clients it adds both. The error is [ErrDeclined], or one of the asker, or a [*fault.Error].
func Run(ctx context.Context, o Options) (Result, error) {
	if err := config.Writable(o.File); err != nil {
		return Result{}, err
	}
	question := "There is no configuration yet. Create one now?"
	present, err := os.ReadFile(o.File)
	there := !errors.Is(err, fs.ErrNotExist)
	if there {
		if err != nil || !Extends(present) {
			return Result{}, existsAlready(o.File)
		}
		question = o.File + " names no model and no client. Add them now?"
	}
	w := &wizard{Options: o}
	if !o.Wanted {
		yes, err := w.confirm(ctx, "create", question)
		if err == nil && !yes {
			err = ErrDeclined
		}
		if err != nil {
			return Result{}, err
		}
	}
	d := draft{}
	if err := w.ask(ctx, &d); err != nil {
		return Result{}, err
	}
	if there {
		err = extend(o.File, present, d.essentials())
	} else {
		err = write(o.File, d.yaml())
	}
	if err != nil {
		return Result{}, err
	}
	w.note("Saved " + o.File)
	if d.model != "" {
		w.note("The default model is " + d.model + ". loki -m MODEL asks another one, loki --list models lists them.")
	}
	if !there { // what a user would not guess
		w.note("Answers are saved in messages.md. To turn this off: save: false")
	}
	w.noteKey(&d)
	if o.Wanted {
		w.note("Ask something: loki \"...\", or open a chat: loki")
	}
	return Result{File: o.File, Model: d.model}, nil
}

// ask asks for a provider, what it needs and its model, and stores its keys.
func (w *wizard) ask(ctx context.Context, d *draft) error {
	for begin := *d; ; *d = begin {
		p, err := w.chooseProvider(ctx)
		if err != nil {
			return err
		}
		if err = w.askFields(ctx, p, d); err == nil {
			err = w.chooseModel(ctx, p, d)
		}
		switch {
		case err == nil:
			return w.keep(ctx, d)
		case !errors.Is(err, errBack):
			return err
		}
	}
}

// back is the answer that leads to the list of providers again, and errBack the error of a question that got it.
const back = "back"

var errBack = errors.New("the user chooses another provider")

func existsAlready(file string) error {
	return fault.New(fault.Config, "%s exists already", file).WithHint("edit it, or move it away to start over")
}

// wizard asks the questions.
type wizard struct {
	Options
	taken []string // names of clients that there are
}

func (w *wizard) note(text string) {
	if w.Note != nil {
		w.Note(text)
	}
}

func (w *wizard) getenv(name string) string {
	if w.Getenv == nil {
		return ""
	}
	return w.Getenv(name)
}

const yes, no = "Yes", "No"

func (w *wizard) confirm(ctx context.Context, id, text string) (bool, error) {
	answer, err := w.Asker.Ask(ctx, ask.Question{
		ID: id, Kind: ask.Select, Text: text, Options: []string{yes, no}, Default: yes, HasDefault: true,
	})
	return answer == yes, err
}

func (w *wizard) selectOne(ctx context.Context, id, text string, options []string) (string, error) {
	answer, err := w.Asker.Ask(ctx, ask.Question{ID: id, Kind: ask.Select, Text: text, Options: options, Default: options[0], HasDefault: true})
	if err == nil && answer == back {
		err = errBack
	}
	return answer, err
}

// checkedLine asks for a line that check, which may be nil, has nothing against. Blanks around it do not count.
func (w *wizard) checkedLine(ctx context.Context, kind ask.Kind, id, text string, required bool, check func(string) error) (string, error) {
	q := ask.Question{ID: id, Kind: kind, Text: text, Validate: func(answer string) error {
		answer = strings.TrimSpace(answer)
		switch {
		case answer == back:
			return nil
		case answer == "" && required:
			return errors.New("an answer is required")
		case answer == "" || check == nil:
			return nil
		}
		return check(answer)
	}}
	answer, err := w.Asker.Ask(ctx, q)
	switch answer = strings.TrimSpace(answer); {
	case err == nil && answer == back:
		err = errBack
	case err == nil && required && answer == "":
		err = fmt.Errorf("%s: no answer", text)
	}
	return strings.TrimSpace(answer), err
}
