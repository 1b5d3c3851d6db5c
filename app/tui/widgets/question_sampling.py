"""A sampling request: what a server wants a model to be asked, and the reply that a person sends instead.

Page: client/sampling. Nothing is asked of any model from here; a command that the person has configured may
draft a reply when its button is pressed, and what it printed stands in the editor like anything typed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.widgets import Button

from app.config import Abilities
from app.engine.commands import Engine, EngineError
from app.forms.sampling import MODEL, SamplingForm, blocks_of, estimate
from app.text import PREVIEW_LIMIT, inert, inert_line
from app.tui.widgets.field_rows import FieldRow
from app.tui.widgets.form_fields import FormFields, read_draft
from app.tui.widgets.host import host_of, in_background, is_alive
from app.tui.widgets.inert import InertText, Part, content, joined
from app.tui.widgets.message_box import MessageBox
from app.tui.widgets.question_form import QuestionForm
from app.tui.widgets.refusing import Refusable
from storage.records import QuestionRecord


class QuestionSampling(QuestionForm, Refusable):
    """Shows the whole conversation and its limits; takes a reply, or a refusal that stays here."""

    DEFAULT_CSS = """
    QuestionSampling MessageBox { margin: 0; border-left: wide $border-blurred; padding: 0 0 0 1; }
    QuestionSampling .asked { color: $text-muted; max-height: 3; border-left: none; padding: 0; }
    QuestionSampling .count { margin: 0 0 1 0; }
    """

    def __init__(
        self,
        question: QuestionRecord,
        draft_json: str | None = None,
        abilities: Abilities = Abilities(sampling=True),  # noqa: B008 (frozen)
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(question, draft_json, monotonic=monotonic)
        self.sampling_form = SamplingForm(self.params)
        self.fields = FormFields(self.sampling_form, read_draft(draft_json))
        self._command = abilities.sampling_command
        self._conversation = MessageBox()
        self._count = InertText("", "$text-muted", classes="count")
        self._draft = Button(content("Draft"), compact=True, classes="draft answer")

    @property
    def message(self) -> str:
        return ""

    def body(self) -> ComposeResult:
        asked = self.sampling_form.sampling
        yield InertText(
            "It wants a model to be asked this. You answer in the model's place.",
            "$text-warning",
            classes="intro",
        )
        if asked.faults:
            yield InertText("\n".join(f"! The server's mistake: {f}" for f in asked.faults), classes="notice")
        with self._conversation:
            yield InertText(joined(*conversation(blocks_of(asked))))
        with MessageBox(classes="asked"):
            yield InertText(" · ".join(f"{name}: {inert_line(value)}" for name, value in asked.settings))
        yield self._count
        yield from super().body()

    def buttons(self) -> ComposeResult:
        yield Button(content("Send ^S"), "success", compact=True, classes="answer accept")
        yield Button(content("Refuse"), compact=True, classes="answer refuse warns")
        if self._command:
            yield self._draft
        yield self._json
        yield self._copy

    def on_mount(self) -> None:
        """Count what is typed already."""
        super().on_mount()
        self._show_count()

    def on_form_fields_changed(self, event: FormFields.Changed) -> None:
        """Keep the count true, too."""
        super().on_form_fields_changed(event)
        self._show_count()

    def limit_height(self, rows: int) -> None:
        """Leave the reply in sight below the conversation, which scrolls in its own box."""
        super().limit_height(rows)
        self._conversation.styles.max_height = max(4, min(16, rows - 13))

    def _show_count(self) -> None:
        text, most = self._text or "", self.sampling_form.sampling.max_tokens
        about = estimate(text)
        limit = "no limit named" if most is None else f"at most {most:,}"
        over = most is not None and about > most
        self._count.show(
            f"Reply: about {about:,} tokens (an estimate), {limit}{'; it may be over' if over else ''}.",
            "$text-warning" if over else "$text-muted",
        )

    @property
    def _text(self) -> str | None:
        entry = self.fields.entries.get("text")
        return entry if isinstance(entry, str) else None

    def _row(self, name: str) -> FieldRow:
        return next(row for row in self.fields.rows if row.field.name == name)

    def pressed(self, button: Button) -> None:
        """Let the command draft a reply; everything else is the form's."""
        if button is self._draft:
            self._begin_draft()
        else:
            super().pressed(button)

    def _begin_draft(self) -> None:
        if self.phase != "asking":
            return
        engine = host_of(self).engine
        if engine is None:
            self._say("Still connecting: try again in a moment.", "$text-warning")
        elif self._text:
            self._say("Something is typed already. Clear the reply first: a draft never replaces it.")
        else:
            self._draft.disabled = True
            self._say(f"{inert_line(self._command[0], 60)} is drafting a reply…")
            in_background(self.app, self._drafting(engine), group="drafting")

    async def _drafting(self, engine: Engine) -> None:
        try:
            text = await engine.draft_reply(self.question)
        except EngineError as error:
            self._drafted(error.message, "$text-error")
            return
        if self.phase != "asking" or not is_alive(self):
            return
        if self._text:
            self._drafted("The draft came, but something was typed meanwhile: clear the reply, draft again.")
            return
        safe = inert(text, PREVIEW_LIMIT * 16)
        row = self._row("text")
        row.put(safe)
        row.touched(safe)
        model = self._row("model")
        if self.fields.entries.get("model", MODEL) == MODEL:
            name = inert_line(os.path.basename(self._command[0]), 120)
            model.put(name)
            model.touched(name)
        changed = " Control characters in it are shown as signs." if safe != text else ""
        self._drafted(f"A draft: read it, change it, then send or refuse.{changed}")

    def _drafted(self, words: str, style: str = "") -> None:
        if is_alive(self):
            self._draft.disabled = self.phase != "asking"
            self._say(words, style)


def conversation(said: Sequence[tuple[str, str]]) -> list[Part]:
    """Return who said what: names in bold, words set in: no line of the server's passes for a name."""
    parts: list[Part] = []
    room = PREVIEW_LIMIT
    for number, (who, what) in enumerate(said):
        if room <= 0:
            left = len(said) - number
            parts.append((f"And {left:,} more messages, which the pane Raw has.\n", "$text-warning"))
            break
        shown = inert(what, room)
        room -= len(shown)
        parts.append((f"{inert_line(who, 40)}\n", "bold"))
        parts += [f"  {line}\n" for line in shown.split("\n")]
    if not said:
        parts.append(("The conversation is empty.\n", "$text-muted"))
    text, style = parts[-1] if isinstance(parts[-1], tuple) else (parts[-1], "")
    return [*parts[:-1], (text.rstrip("\n"), style)]
