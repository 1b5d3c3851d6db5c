"""The two themes: a quiet ground, one colour of our own, and warm colours kept for what needs a person."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="taskinbox-dark",
    dark=True,
    background="#14171c",
    surface="#191d23",
    panel="#22272f",
    boost="#1e232a",
    foreground="#d5dae1",
    primary="#6ea8c9",
    secondary="#5b7f95",
    accent="#8fb8d0",
    warning="#e3b35f",
    error="#e57373",
    success="#86b98a",
    variables={
        "quiet": "#8b95a3",
        "faint": "#4d5765",
        "block-cursor-background": "#2f4c5e",
        "block-cursor-foreground": "#f1f5f9",
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": "#262c35",
        "block-cursor-blurred-foreground": "#d5dae1",
        "button-focus-text-style": "bold",
        "border": "#5b7f95",
        "border-blurred": "#333a45",
        "scrollbar": "#39424e",
        "scrollbar-hover": "#4a5563",
        "scrollbar-active": "#6ea8c9",
        "scrollbar-background": "#171b20",
        "scrollbar-background-hover": "#171b20",
        "scrollbar-background-active": "#171b20",
        "input-selection-background": "#6ea8c9 35%",
    },
)

LIGHT: Final = Theme(
    name="taskinbox-light",
    dark=False,
    background="#f7f7f4",
    surface="#ffffff",
    panel="#ebebe6",
    boost="#f0f0eb",
    foreground="#23282e",
    primary="#1f6a8c",
    secondary="#4d6b7a",
    accent="#1f6a8c",
    warning="#955f00",
    error="#b3261e",
    success="#2e6b38",
    variables={
        "quiet": "#646c74",
        "faint": "#b4b6b1",
        "block-cursor-background": "#cfe2ec",
        "block-cursor-foreground": "#10161b",
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": "#e6e8e6",
        "block-cursor-blurred-foreground": "#23282e",
        "button-focus-text-style": "bold",
        "border": "#4d6b7a",
        "border-blurred": "#cfcfc8",
        "scrollbar": "#c4c6c2",
        "scrollbar-hover": "#a9adaa",
        "scrollbar-active": "#1f6a8c",
        "scrollbar-background": "#f0f0eb",
        "scrollbar-background-hover": "#f0f0eb",
        "scrollbar-background-active": "#f0f0eb",
        "input-selection-background": "#1f6a8c 25%",
    },
)

THEMES: Final = (DARK, LIGHT)

VARIABLES: Final = {"quiet": "#858b92", "faint": "#70757c"}
"""Our own colours, for themes that are not ours. Textual's ``$text-muted`` depends on the ground it is
drawn on, which a line drawn by hand and a span of text do not have."""
