package builtin

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"loki/internal/base/file/userfile"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/builtin/script"
	"loki/internal/llm/provider/normalize"
)

// maxScriptBytes is the largest rule file that is read.
const maxScriptBytes = 1 << 20

// scriptReply answers req from the rule file at path.
func (p *Provider) scriptReply(ctx context.Context, req provider.Request, path string) (reply, error) {
	if path == "" {
		return reply{}, invalid(nil, "the model %q has no rule file: set script: of the client or the variable LOKI_SCRIPT_FILE, or use the model %s/PATH", req.Model, Script)
	}
	file, err := p.script(ctx, filepath.Clean(path))
	if err != nil {
		return reply{}, invalid(err, "model %s", req.Model)
	}
	a, err := file.Answer(script.NewQuery(req))
	if err != nil {
		return reply{}, invalid(err, "model %s", req.Model)
	}
	return play(req, a), nil
}

// script returns the rule file at path. A file that cannot be read is tried again by
// the next request, so that it can be fixed while Loki runs.
func (p *Provider) script(ctx context.Context, path string) (*script.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.scripts[path]; ok {
		return f, nil
	}
	data, err := readScript(ctx, path)
	if err != nil {
		return nil, err
	}
	f, err := script.Parse(path, data)
	if err != nil {
		return nil, err
	}
	p.scripts[path] = f
	return f, nil
}

func readScript(ctx context.Context, path string) (data []byte, err error) {
	f, err := userfile.Open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("rule file: %w", err)
	}
	defer f.Close()
	if data, err = io.ReadAll(io.LimitReader(f, maxScriptBytes+1)); err != nil {
		return nil, fmt.Errorf("rule file: %w", err)
	}
	if len(data) > maxScriptBytes {
		return nil, fmt.Errorf("rule file %s: larger than %d bytes", path, maxScriptBytes)
	}
	return data, nil
}

// play turns the answer of a rule into a reply: reasoning, text, calls, in this order.
func play(req provider.Request, a script.Answer) reply {
	r := reply{delay: a.Delay, chunkDelay: a.ChunkDelay, stop: a.Stop}
	for _, content := range []struct {
		kind provider.ChunkKind
		text string
	}{{provider.Reasoning, a.Reasoning}, {provider.Text, a.Text}} {
		pieces := wordChunks(content.text)
		if a.Chunk > 0 {
			pieces = sizedChunks(content.text, a.Chunk)
		}
		if content.text != "" {
			r.blocks = append(r.blocks, block{provider.Chunk{Kind: content.kind, Text: content.text}, pieces})
		}
	}
	for _, c := range normalize.NumberCalls(a.Calls, req.Messages) {
		r.blocks = append(r.blocks, block{Chunk: provider.Chunk{Kind: provider.ToolCall, ToolCall: c}})
	}
	if r.stop == "" {
		r.stop = chat.StopEnd
		if len(a.Calls) > 0 {
			r.stop = chat.StopToolCalls
		}
	}
	r.usage = scriptUsage(countUsage(req, r.blocks), a.Usage)
	if a.Fail != nil {
		failure := a.Fail.Err // a copy: callers may keep and change theirs
		r.fail, r.failAfter = &failure, a.Fail.AfterChunks
	}
	return r
}

// scriptUsage returns counted with the counts that a rule gives in their place.
func scriptUsage(counted chat.Usage, given script.Usage) chat.Usage {
	for _, part := range []struct {
		field *int
		given *int
	}{
		{&counted.InputTokens, given.Input},
		{&counted.CachedInputTokens, given.CachedInput},
		{&counted.OutputTokens, given.Output},
		{&counted.ReasoningTokens, given.Reasoning},
	} {
		if part.given != nil {
			*part.field = *part.given
		}
	}
	// Reasoning is a part of the output, whichever of the two was given.
	counted.ReasoningTokens = min(counted.ReasoningTokens, counted.OutputTokens)
	return counted
}
