import { useState } from "preact/hooks";
import { get, send, who, type Who } from "../api";

export function Login() {
  const [error, setError] = useState(() => {
    const kept = sessionStorage.getItem("login") ?? "";
    sessionStorage.removeItem("login");
    return kept;
  });
  const [busy, setBusy] = useState(false);

  async function submit(e: Event) {
    e.preventDefault();
    const form = e.target as HTMLFormElement, box = form.elements.namedItem("token") as HTMLInputElement;
    setBusy(true);
    try {
      await send("POST", "/v1/session", { token: box.value.trim() });
      box.value = "";
      who.value = await get<Who>("/v1/whoami");
    } catch (problem) {
      setError((problem as Error).message);
      setBusy(false);
    }
  }
  return (
    <main class="login">
      <h1>Stint</h1>
      <form onSubmit={submit}>
        <label for="token">Your token</label>
        <input id="token" name="token" type="password" autoComplete="off" spellcheck={false} required autoFocus placeholder="stint_…" aria-describedby="hint" />
        {error && <p class="trouble" role="alert">{error}</p>}
        <button type="submit" class="main" disabled={busy}>Log in</button>
        <p id="hint">The token is exchanged for a session of this browser: an hour without use, twelve at most. On stintd's own machine <code>stint console</code> prints a link that needs no token.</p>
      </form>
    </main>
  );
}
