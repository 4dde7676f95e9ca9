-- Whose calls can be believed (085_callbacks.sql).
select name, settings, secret_reference from fencepost.callback_channels()
