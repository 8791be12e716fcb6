// Package bedrock is the client of Amazon Bedrock: conversations through Converse
// and ConverseStream, embeddings of Titan and Cohere models through InvokeModel.
// Requests are built, signed and read by the AWS SDK, whose own retries are off.
//
// # Credentials and region
//
// What the client is configured with counts first: a pair of access keys, with or
// without a session token, or a Bedrock API key. Without either the usual variables
// are looked at: AWS_BEARER_TOKEN_BEDROCK, then AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY with AWS_SESSION_TOKEN. What comes then is the SDK's chain: the
// profile that AWS_PROFILE names (keys, a role to assume, SSO, a command); without
// AWS_PROFILE the web identity in the environment, then the default profile; where the
// profile has none, those of the container or the EC2 machine. The region comes from the
// client, AWS_REGION, AWS_DEFAULT_REGION, or the profile.
//
// All this happens anew for each request, except that credentials that expire are kept
// until they do. Requests for credentials go through the proxy of the client, those to the
// machine itself through none.
//
// # Requests
//
// Patches change the body and the headers before the request is signed; their URL
// has no effect. Neighboring messages of one role become one, since Converse wants
// the roles to alternate, and blank texts are left out, since it rejects them.
// Images have to be data: URLs. The output of a tool goes out as JSON if it is an
// object and as text otherwise. Tools that only the history names are declared as
// withdrawn, because a conversation with calls and without declarations is rejected.
//
// An effort becomes additional request fields of the Claude models that reason:
// up to version 4.5 a budget of tokens, from 4.6 on adaptive thinking of that
// effort. Such a request carries no temperature and no top_p, which these models
// refuse while they think. Models that think by themselves, as from Claude 5 on, are
// asked for the words of their thoughts even without an effort. What a model rejects of
// all this, or of cache points and sampling, is left out the next time, and the client
// remembers it for the model. Claude and Nova models get cache points behind system
// prompt, tools and last message as soon as the conversation is likely to continue.
//
// Reasoning is sent back if it bears a signature of this package; that of other
// providers and unsigned reasoning stay out. A leading <think> block of an earlier
// answer is left out.
//
// # Replies
//
// A blank line separates blocks of text. Tool calls come at the end, when the
// reply is known to be complete: without the event messageStop it is a
// [provider.Transient] failure. An exception in the stream fails the request, after
// the text before it, with the exception's message. Input tokens include those read
// from and written to the cache. Failures are [*provider.Error] or wrap the
// context's error.
//
// A client is safe for concurrent use.
package bedrock

import (
	"cmp"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"

	"loki/internal/base/fault"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/wire"
)

// Options configures a client. The zero value of a field is its default.
type Options struct {
	// Options are those of any client. APIBase replaces
	// https://bedrock-runtime.<region>.amazonaws.com, for private endpoints; requests are
	// signed for the region all the same. APIKey returns a Bedrock API key and is called for
	// requests without access keys. HTTP needs no patches.
	client.Options

	// Region is the AWS region, such as us-east-1. If empty it is looked up as the
	// package documentation says.
	Region string

	// AccessKeyID, SecretAccessKey and SessionToken return the parts of a set of
	// credentials, or "" for none. They are called for each request. Nil means none.
	AccessKeyID, SecretAccessKey, SessionToken func() (string, error)

	// Proxy is the proxy for requests for credentials, see [wire.Options].
	Proxy *string

	// Patches are the rules of the client. They are applied here, because requests are signed.
	Patches wire.Patches

	// Getenv looks up environment variables. Nil means [os.Getenv].
	Getenv func(name string) string
}

// Client is a connection to Bedrock. It implements [provider.Chat] and
// [provider.Embedder].
type Client struct {
	frame    *client.Frame
	source   *source
	patches  wire.Patches
	sdk      *bedrockruntime.Client
	dialects client.Dialects[dialect] // by real name
}

var (
	_ provider.Chat     = (*Client)(nil)
	_ provider.Embedder = (*Client)(nil)
)

const exampleBase = "https://bedrock-runtime.us-east-1.amazonaws.com"

// New returns a client. It looks up no credentials. Errors have the code [fault.Config].
func New(o Options) (*Client, error) {
	own := o.Options
	own.APIBase = cmp.Or(o.APIBase, exampleBase)
	frame, err := client.New(own, exampleBase)
	if err != nil {
		return nil, err
	}
	var base *string // nil lets the SDK derive it from the region
	if strings.Contains(o.APIBase, "?") {
		return nil, fault.New(fault.Config, "api_base of client %q has a query, and Bedrock takes none", o.Name)
	}
	if o.APIBase != "" {
		base = &frame.Base
	}
	proxy, err := wire.Proxy(o.Name, o.Proxy)
	if err != nil {
		return nil, err
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	return &Client{
		frame: frame, patches: o.Patches,
		source: &source{
			client: o.Name, region: o.Region, getenv: o.Getenv, proxy: proxy,
			accessKeyID: o.AccessKeyID, secretAccessKey: o.SecretAccessKey, sessionToken: o.SessionToken, apiKey: o.APIKey,
		},
		sdk: bedrockruntime.New(bedrockruntime.Options{HTTPClient: frame.HTTP, Retryer: aws.NopRetryer{}, BaseEndpoint: base}),
	}, nil
}
