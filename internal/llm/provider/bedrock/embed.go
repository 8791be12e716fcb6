package bedrock

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/wire"
)

// maxTexts is how many texts the Cohere models take at once.
const maxTexts = 96

// titanRequests is how many requests run at once. Titan models take one text each.
const titanRequests = 4

// Embed implements [provider.Embedder] for the models of Cohere and Titan.
func (c *Client) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	if len(req.Texts) == 0 {
		return nil, chat.Usage{}, nil
	}
	m := c.frame.Model(req.Model)
	var batches client.Batches
	var payload func(texts []string) any
	switch name := strings.ToLower(m.RealName + " " + req.Model); {
	case strings.Contains(name, "cohere.embed"):
		batches.Size = maxTexts
		payload = func(texts []string) any { return newCohereRequest(texts, req.Query) }
	case strings.Contains(name, "titan-embed"):
		batches = client.Batches{Size: 1, Width: titanRequests}
		payload = func(texts []string) any { return titanRequest{texts[0]} }
	default:
		return nil, chat.Usage{}, &provider.Error{
			Kind: provider.Invalid,
			Msg:  "model " + req.Model + " of client " + c.frame.Name + ": embeddings are known for the models cohere.embed and amazon.titan-embed",
		}
	}
	access, err := c.source.resolve(ctx)
	if err != nil {
		return nil, chat.Usage{}, err
	}
	call := c.options(access, wire.Call{API: wire.Embeddings, Model: req.Model, Patch: m.Patch}, false)
	return c.frame.Embed(ctx, req.Texts, batches, func(ctx context.Context, texts []string) ([][]float32, int, error) {
		return c.embed(ctx, m.RealName, payload(texts), call)
	})
}

type cohereRequest struct {
	Texts     []string `json:"texts"`
	InputType string   `json:"input_type"`
}

type titanRequest struct {
	InputText string `json:"inputText"`
}

func newCohereRequest(texts []string, query bool) cohereRequest {
	if query {
		return cohereRequest{texts, "search_query"}
	}
	return cohereRequest{texts, "search_document"}
}

// embed sends one request and returns the vectors of the reply and the tokens that were
// counted.
func (c *Client) embed(ctx context.Context, model string, payload any, o func(*bedrockruntime.Options)) ([][]float32, int, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return nil, 0, &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be written as JSON", Err: err}
	}
	out, err := c.sdk.InvokeModel(ctx, &bedrockruntime.InvokeModelInput{
		ModelId: &model, Body: body, ContentType: aws.String("application/json"), Accept: aws.String("application/json"),
	}, o)
	if err != nil {
		return nil, 0, failure(ctx, c.askText(), err)
	}
	vectors, tokens, err := readVectors(out.Body)
	return vectors, max(tokens, countedTokens(out.ResultMetadata)), err
}

// readVectors reads the replies of both makers: embeddings is a list of vectors or
// an object of such lists by type, embedding a single vector. tokens is 0 if the
// reply does not say.
func readVectors(data []byte) (vectors [][]float32, tokens int, err error) {
	var reply struct {
		Embeddings json.RawMessage
		Embedding  []float32
		Tokens     int `json:"inputTextTokenCount"`
	}
	if json.Unmarshal(data, &reply) != nil {
		return nil, 0, wire.BadReply("the reply holds no embeddings", data)
	}
	var byType struct{ Float [][]float32 }
	switch {
	case reply.Embedding != nil:
		return [][]float32{reply.Embedding}, reply.Tokens, nil
	case json.Unmarshal(reply.Embeddings, &vectors) == nil && len(vectors) > 0:
		return vectors, reply.Tokens, nil
	case json.Unmarshal(reply.Embeddings, &byType) == nil && len(byType.Float) > 0:
		return byType.Float, reply.Tokens, nil
	}
	if err := wire.ReplyError(data); err != nil {
		return nil, 0, err
	}
	return nil, 0, wire.BadReply("the reply holds no embeddings", data)
}

// countedTokens returns the tokens that Bedrock counted, 0 if it does not say.
func countedTokens(m middleware.Metadata) int {
	resp, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(resp.Header.Get("X-Amzn-Bedrock-Input-Token-Count"))
	if err != nil {
		return 0
	}
	return max(0, n)
}
