-- What is missing of the boundary between the roles: a sentence a row; none where it is whole.
select fencepost.boundary_missing()
