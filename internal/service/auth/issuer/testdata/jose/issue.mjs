// Prints a JSON Web Key Set, a token signed with each of its keys, and tokens that are wrong in one way.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const find = createRequire(process.env.MODULES + "/");
const { exportJWK, generateKeyPair, calculateJwkThumbprint, SignJWT, UnsecuredJWT, EncryptJWT } = await import(pathToFileURL(find.resolve("jose")));

const claims = { scope: "openid read:runs", sub: "alice" };
const token = (key, header, more = {}) => {
  const t = new SignJWT({ ...claims, ...more.claims }).setProtectedHeader(header).setIssuedAt().setIssuer(more.issuer ?? "https://id.example.com/").setAudience(more.audience ?? ["loki", "other"]);
  return t.setExpirationTime(more.expires ?? "10m").sign(key);
};

const keys = [], good = {}, bad = {};
let rsa;
for (const alg of ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]) {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = await exportJWK(publicKey);
  const kid = await calculateJwkThumbprint(jwk);
  keys.push({ ...jwk, kid, alg, use: "sig" });
  good[alg] = await token(privateKey, { alg, kid, typ: "at+jwt" });
  bad["expired " + alg] = await token(privateKey, { alg, kid }, { expires: "10 minutes ago" });
  bad["audience " + alg] = await token(privateKey, { alg, kid }, { audience: "other" });
  bad["issuer " + alg] = await token(privateKey, { alg, kid }, { issuer: "https://id.example.com" });
  if (alg === "RS256") rsa = { kid, privateKey, publicKey, jwk };
}
for (const alg of ["PS384", "PS512", "ES512"]) {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  const kid = alg;
  keys.push({ ...(await exportJWK(publicKey)), kid, use: "sig" });
  bad["algorithm " + alg] = await token(privateKey, { alg, kid });
}
bad["algorithm HS256"] = await token(new TextEncoder().encode(rsa.jwk.n), { alg: "HS256", kid: rsa.kid });
bad["algorithm none"] = new UnsecuredJWT(claims).setIssuer("https://id.example.com/").setAudience("loki").setExpirationTime("10m").encode();
bad["algorithm PS256"] = await token((await generateKeyPair("PS256")).privateKey, { alg: "PS256", kid: rsa.kid });
bad["signature RS256"] = await token((await generateKeyPair("RS256")).privateKey, { alg: "RS256", kid: rsa.kid });
bad["malformed JWE"] = await new EncryptJWT(claims).setProtectedHeader({ alg: "RSA-OAEP-256", enc: "A256GCM" }).encrypt((await generateKeyPair("RSA-OAEP-256")).publicKey);
console.log(JSON.stringify({ keys, good, bad }));
