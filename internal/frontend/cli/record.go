package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent/cases/cassette"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/run"
)

// tape begins to record or to play a cassette if the options ask for it. finish ends that: it gets the error of
// the work and returns it, or its own.
func (c *command) tape(ctx context.Context) (finish func(error) error, err error) {
	asked := func(err error) error { return err }
	switch {
	case c.opts.record == "" && c.opts.replay == "":
		return asked, nil
	case c.opts.action.work == nil:
		return nil, fault.New(fault.Usage, "--record and --replay go with a text or with --agent, not with %s", flagText(c.opts.action.flag))
	case c.opts.replay != "":
		return c.replay(ctx)
	case c.app.DryRun():
		return nil, fault.New(fault.Usage, "a dry run has nothing to record")
	}
	if err := writable(c.opts.record); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "the file of --record cannot be written")
	}
	recorder := c.app.Record()
	return func(err error) error {
		recorded := recorder.Format(c.opts.record)
		if recorded == nil {
			return err // no run began
		}
		writeErr := atomicfile.Write(c.opts.record, recorded, atomicfile.Options{Mode: 0o644})
		if writeErr != nil && err == nil {
			return fault.Wrap(fault.Failure, writeErr, "the file of --record")
		}
		return errors.Join(err, writeErr)
	}, nil
}

// writable reports why a file cannot be written, before there is something to write. It makes nothing.
func writable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory", path)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".record-*")
	if err != nil {
		if pathError, ok := errors.AsType[*fs.PathError](err); ok {
			return fmt.Errorf("the directory %s: %w", filepath.Dir(path), pathError.Err)
		}
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// replay plays the cassette of --replay. What the command does not say is as it was recorded.
func (c *command) replay(ctx context.Context) (finish func(error) error, err error) {
	source := c.opts.replay
	src, err := yamldoc.ReadFile(source)
	var played *cassette.Cassette
	switch {
	case err == nil:
		if played, err = cassette.Parse(source, src); err != nil {
			return nil, fault.Wrap(fault.Config, err, "")
		}
		played.Agent = played.AgentFrom(source)
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(source, `/\.`):
		if played, err = c.recordedCassette(ctx, source); err != nil {
			return nil, err
		}
		source = "run " + source
	default:
		return nil, fault.Wrap(fault.NotFound, err, "the cassette of --replay")
	}
	c.playAsRecorded(played)
	player := c.app.Replay(played, source)
	return func(err error) error {
		if unused := player.UnusedSteps(); err == nil && len(unused) > 0 && !c.opts.quiet {
			const most = 5
			shown := unused
			if len(shown) > most {
				shown = append(slices.Clone(shown[:most]), "and others")
			}
			c.warn(text.Count(len(unused), "recorded step") + " of " + source + " not used: " + strings.Join(shown, "; "))
		}
		return err
	}, nil
}

// playAsRecorded has the command run the agent and ask what was recorded, as far as it does not say so.
func (c *command) playAsRecorded(played *cassette.Cassette) {
	o := &c.opts
	if o.agent == "" && played.Agent != "" && o.plan == "" {
		o.agent = played.Agent
		i := slices.IndexFunc(actions(), func(a action) bool { return a.flag == "agent" })
		o.action = actions()[i]
	}
	if len(o.text) == 0 && o.plan == "" && (c.InTerminal || played.Prompt != "") {
		o.text = []string{played.Prompt}
	}
	if o.model == "" {
		o.model = played.Asked
	}
	for name, v := range played.Variables {
		if !slices.ContainsFunc(o.variables, func(given [2]string) bool { return given[0] == name }) {
			o.variables = append(o.variables, [2]string{name, v})
		}
	}
}

// recordedCassette returns the record of a run as a cassette. Requests are not on record, so steps are compared
// by what they are.
func (c *command) recordedCassette(ctx context.Context, id string) (*cassette.Cassette, error) {
	store, err := c.app.OpenRuns()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	h, err := store.History(ctx, id)
	if err != nil {
		return nil, err
	}
	secrets, err := run.SecretsOf(ctx, store, h.Info)
	if err != nil {
		return nil, err
	}
	played, err := cassette.OfRun(h, func(number int) ([]byte, error) {
		data, err := store.Step(ctx, h.Info.ID, number)
		if err != nil {
			return nil, err
		}
		return secrets.JSON(data)
	})
	if err == nil && h.Info.Agent != "" && !h.Info.ByName {
		played.Agent = h.Info.AgentDir
	}
	return played, err
}
