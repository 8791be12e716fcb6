package bedrock

import (
	"encoding/base64"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"loki/internal/llm/chat"
)

// Signatures bear a mark, because a conversation may hold reasoning of several
// providers and a model rejects what it has not signed. The mark also distinguishes a
// redacted block, whose bytes are in base64, from a signed one without text.
const (
	signedMark   = "bedrock:signed:"
	redactedMark = "bedrock:redacted:"
)

func ownSignature(signature string) string { return signedMark + signature }

func redactedSignature(content []byte) string {
	return redactedMark + base64.StdEncoding.EncodeToString(content)
}

// reasoningBlock returns the block that p came from, nil if it did not come from
// here.
func reasoningBlock(p chat.Part) types.ReasoningContentBlock {
	if signature, ok := strings.CutPrefix(p.Signature, signedMark); ok {
		return &types.ReasoningContentBlockMemberReasoningText{
			Value: types.ReasoningTextBlock{Text: aws.String(p.Text), Signature: aws.String(signature)},
		}
	}
	if text, ok := strings.CutPrefix(p.Signature, redactedMark); ok {
		if content, err := base64.StdEncoding.DecodeString(text); err == nil {
			return &types.ReasoningContentBlockMemberRedactedContent{Value: content}
		}
	}
	return nil
}
