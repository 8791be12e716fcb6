package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/file/userfile"
	"loki/internal/base/text"
	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/tool/script/argc"
)

// callTool runs the tool of --call-tool and prints what a model would get.
func (c *command) callTool(ctx context.Context) error {
	name, arguments := c.opts.callTool[0][0], c.opts.callTool[0][1]
	if arguments == dash {
		var err error
		if arguments, err = input.ReadStdin(c.In); err != nil {
			return err
		}
	}
	face := c.newFace(ctx)
	ctx = event.NewContext(ctx, c.app.Events(face.emitter))
	box, name, done, err := c.app.Toolbox(ctx, name, c.asker(face, false), c.opts.yes)
	defer done()
	if err != nil {
		return face.close(err)
	}
	const id = "call_1"
	result, failed, err := box.Call(ctx, chat.ToolCall{ID: id, Name: name, Arguments: arguments}, steps.Steps{})
	if err = face.close(err); err != nil {
		return err
	}
	if result != "" {
		if result = c.hide(result); json.Valid([]byte(result)) {
			result = string(escape([]byte(result)))
		} else {
			result = text.Printable(result)
		}
		fmt.Fprintln(c.Out, result)
	}
	if why, ok := box.DeclineReason(id); ok {
		return fault.New(why, "tool %s was not run", name)
	}
	if failed {
		return fault.New(fault.Tool, "tool %s failed", name)
	}
	return nil
}

// buildTools makes the scripts of tools ready to be run by hand.
func (c *command) buildTools(ctx context.Context) error {
	if c.opts.agent == "" {
		written, err := c.app.Tools.Build(ctx, nil)
		return errors.Join(err, printLines(c.Out, written))
	}
	ref, err := c.app.Agents.Find(c.opts.agent)
	if err != nil {
		return err
	}
	const bash = "tools.sh" // the only one that changes
	file := filepath.Join(ref.Dir, bash)
	src, _ := os.ReadFile(file)
	trusted := c.app.Trust.OfRef(ctx, ref)
	written, err := c.app.Tools.Build(ctx, &ref)
	if built, failed := argc.Build(src, argc.Options{}); failed == nil && trusted.Trusted && trusted.Content.Holds(bash, src) {
		err = errors.Join(err, c.app.Trust.AddWritten(ctx, ref.Dir, map[string][]byte{file: built}))
	}
	return errors.Join(err, printLines(c.Out, written))
}

// toolSchema shows the declarations of the tools in a script.
func (c *command) toolSchema(ctx context.Context) error {
	schema, err := c.app.Tools.Schema(ctx, c.opts.value)
	if err != nil {
		return err
	}
	_, err = c.Out.Write(escape(schema))
	return err
}

// argcEval prints the shell code that a script of its own kind evaluates to read its
// arguments. An error becomes code too, or the script would continue without them.
func (c *command) argcEval(ctx context.Context) error {
	file := c.opts.value
	width, _ := strconv.Atoi(c.getenv("TERM_WIDTH"))
	src, err := userfile.ReadFile(ctx, file)
	code := ""
	if err == nil {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		code, err = argc.Eval(src, c.opts.text, argc.Options{Name: name, Width: width})
	}
	if err != nil {
		code = argc.Fail(fmt.Errorf("%s: %w", file, err))
	}
	_, err = fmt.Fprintln(c.Out, code)
	return err
}
