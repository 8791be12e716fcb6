package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
)

// cacheKey returns what distinguishes the requests of one conversation from others, so that they
// meet the same cache: a digest of the conversation's beginning, or "" for a single
// question and for servers that are not OpenAI's.
func (c *Client) cacheKey(req provider.Request, m wire.Model, d dialect) string {
	if m.NoCache || c.kind == kindCompatible || d.noCacheKey {
		return ""
	}
	return conversationID(req)
}

// grokConversation is the field by which xAI finds the cache of a conversation in the
// format of chat completions.
const grokConversation = "X-Grok-Conv-Id"

func (c *Client) grokConversation(req provider.Request, m wire.Model) string {
	if m.NoCache || !strings.HasPrefix(c.frame.Name, "xai") && !strings.HasPrefix(c.frame.Base, "https://api.x.ai/") {
		return ""
	}
	return conversationID(req)
}

// conversationID returns a digest of how a conversation begins, up to the first words of
// the user, or "" if it is likely to be over with the reply.
func conversationID(req provider.Request) string {
	if !provider.GoesOn(req) {
		return ""
	}
	h := sha256.New()
	for _, m := range req.Messages {
		h.Write([]byte(string(m.Role) + "\x00" + m.Text() + "\x00"))
		if m.Role == chat.User {
			break
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}
